"""Products along the reduction: groups of lanes sum a block of rows and columns each.

The lanes of a group stride along the reduction, where the matrix is contiguous.  What a
lane reads of the matrix it multiplies with every row of its block, and what it reads of
the rows with every column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import add
from typing import Any, final

from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.nodes import Index
from kerngen.plan.size import Guard, Literal, Size, ceil_div
from kerngen.schedule.contraction import LEFT, RIGHT, contraction_of
from kerngen.schedule.gemv.eights import (
    EIGHT,
    HALVES,
    Eight,
    EightReader,
    takes_eights,
)
from kerngen.schedule.gemv.row_block import RowBlock, suffix
from kerngen.schedule.gemv.rowwise_join import Round, join_rounds
from kerngen.schedule.gemv.shape import GemvShape
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    counted_terms,
    finish_steps,
    reduction_label,
    reduction_of,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.reduce.rowwise import by_width, row_trips
from kerngen.schedule.sizes import domain_size, extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


def lower_rowwise_block(task: Task, shape: GemvShape) -> Iterator[Variant]:
    """Return the variants that compute blocks of rows and columns in one dispatch."""

    def variant(name: str, when: Guard, names: set[str]) -> Variant:
        return Variant(name, when, (_Rowwise(task, shape, names).shader(),))

    found, over = contraction_of(task), reduction_of(task).indices
    assert not isinstance(found, str), found
    names = {tensor.name for tensor in tensors_read(found.right)}
    run = EIGHT if takes_eights(found.right, over, names) else LANES
    return by_width(task, variant, run)


@final
@dataclass
class _Rowwise:
    """Writes the shader of a variant, which reads the tensors `names` as vectors."""

    task: Task
    shape: GemvShape
    names: set[str]
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        task, shape, contraction = self.task, self.shape, contraction_of(self.task)
        assert not isinstance(contraction, str), contraction
        self.eights = takes_eights(
            contraction.right, reduction_of(task).indices, self.names
        )
        self.width = EIGHT if self.eights else LANES if self.names else 1
        self.builder = ShaderBuilder(task, dict.fromkeys(self.names, LANES))
        self.block = RowBlock(self.builder, task, shape.rows)
        self.reduce = reduction_of(task)
        *outer, self.column = self.block.outer(task.domain)
        self.outer = tuple(outer)
        self.across = shape.columns * shape.across
        self.first_column = t.Ident(
            self.builder.fresh("first_column") if self.across > 1 else ""
        )
        label = f"{reduction_label(task)}_{self.reduce.kind}"
        counts = (shape.rows, shape.columns)
        self.totals = tuple(
            t.Ident(self.builder.fresh(label + suffix(*zip(at, counts, strict=True))))
            for at in product(range(shape.rows), range(shape.columns))
        )

    def shader(self) -> Shader:
        """Return the whole shader."""
        at = self._place()
        self._accumulate(at)
        self._finish(at)
        columns = domain_size(self.outer) * self._column_blocks
        step = self.shape.along * self.width
        return self.builder.finish(
            self.body,
            groups=columns * self.block.needed,
            workgroup_size=self.shape.lanes,
            summary=self._summary(),
            variant="" if self.names else "edge",
            terms=counted_terms(self.reduce),
            trips=row_trips(self.task, self.reduce, Literal(step)),
        )

    @property
    def _column_blocks(self) -> Size:
        return ceil_div(extent_size(self.column.extent), self.across)

    def _summary(self) -> str:
        columns = "a column" if self.across == 1 else f"{self.across} columns"
        rows = "" if self.block.row is None else f", {self.block.count} rows at once"
        return f"one workgroup for {columns}{rows}."

    def _place(self) -> dict[Index, t.Expr]:
        """Name the rows and columns: blocks of one column follow each other."""
        s, body, block = self.builder, self.body, self.block
        group = t.Ident(s.fresh("group"))
        body.append(t.Let(group.name, linear_group(s)))
        blocks = self._named("blocks", to_wgsl(block.needed, s))
        columns = self._named("column_blocks", to_wgsl(self._column_blocks, s))
        size = s.size(self.outer) * columns * blocks
        body += [t.If(group >= size, (t.Return(),)), *block.place(group % blocks)]
        line = group if block.row is None else group // blocks
        if self.across == 1:
            return unravel(s, body, (*self.outer, self.column), line)
        body.append(t.Let(self.first_column.name, line % columns * self.across))
        return unravel(s, body, self.outer, line // columns)

    def _named(self, wanted: str, value: t.Expr) -> t.Expr:
        """Name a value that takes arithmetic."""
        if not isinstance(value, t.Binary):
            return value
        name = t.Ident(self.builder.fresh(wanted))
        self.body.append(t.Let(name.name, value))
        return name

    def _columns(self, at: dict[Index, t.Expr]) -> list[t.Expr]:
        """Name the columns of this lane; beyond the last, that one is read."""
        if self.across == 1:
            return [at[self.column]]
        s, count = self.builder, self.shape.columns
        own = self.first_column + s.lane // self.shape.along * count
        last = s.extent(self.column.extent) - 1
        names = [
            t.Ident(s.fresh(f"{self.column.name}_{number}")) for number in range(count)
        ]
        for number, name in enumerate(names):
            self.body.append(t.Let(name.name, t.call("min", own + number, last)))
        return [*names]

    def _accumulate(self, at: dict[Index, t.Expr]) -> None:
        """Let each lane sum its terms of every row and column."""
        s, indices = self.builder, self.reduce.indices
        columns = self._columns(at)
        zero = identity(s, "sum", self.reduce.type)
        self.body += [t.Var(total.name, zero) for total in self.totals]
        single = len(indices) == 1
        name = s.name(indices[0].name) if single else s.fresh("term")
        size, step = s.size(indices), self.shape.along * self.width
        along = s.lane if self.shape.across == 1 else s.lane % self.shape.along
        start = along * self.width
        turns = self.shape.unroll if single else 1

        def turn(shifts: Sequence[int]) -> list[t.Stmt]:
            return self._turn(at, columns, t.Ident(name), shifts)

        if turns > 1:
            whole = self._named("whole", size // (turns * step) * (turns * step))
            shifts = range(0, turns * step, step)
            many = t.count_up(name, start, whole, turns * step, *turn(shifts))
            self.body.append(many)
            start = whole + start
        self.body.append(t.count_up(name, start, size, step, *turn((0,))))

    def _turn(
        self,
        at: dict[Index, t.Expr],
        columns: list[t.Expr],
        counter: t.Ident,
        shifts: Sequence[int],
    ) -> list[t.Stmt]:
        """Return a turn's statements: read the matrix, then the rows, and add."""
        s, indices = self.builder, self.reduce.indices
        body: list[t.Stmt] = []
        vector = indices[-1] if self.names else None
        label = reduction_label(self.task)
        lowerer = Lowerer(s, at, body, vector=vector, label=label, counts_vectors=True)
        rights: list[list[Any]] = []
        inners: list[Lowerer] = []
        for shift in shifts:
            place = counter + shift
            over = (
                {indices[0]: place}
                if len(indices) == 1
                else unravel(s, body, indices, place)
            )
            inners.append(replace(lowerer, at={**at, **over}))
            where = (len(rights), len(shifts))
            read = self._eights if self.eights else self._rights
            rights.append([*read(inners[-1], columns, where)])
        for number, inner in enumerate(inners):
            take = self._take_eights if self.eights else self._take
            take(inner, rights[number], (number, len(shifts)))
        return body

    def _rights(
        self, inner: Lowerer, columns: list[t.Expr], shift: tuple[int, int]
    ) -> Iterator[Value]:
        """Read the right factor of every column, once for all rows."""
        for number, column in enumerate(columns):
            there = replace(inner, at={**inner.at, self.column: column})
            value = there.lower(self.block.found.right)
            yield self._named_factor(
                inner, "right", value, (number, len(columns)), shift
            )

    def _eights(
        self, inner: Lowerer, columns: list[t.Expr], shift: tuple[int, int]
    ) -> Iterator[Eight]:
        """Read the right factor of every column at eight neighbours."""
        (index,) = self.reduce.indices
        for number, column in enumerate(columns):
            there = replace(inner, at={**inner.at, self.column: column})
            which = suffix((number, len(columns)), shift)
            reader = EightReader(there, index, self.names, which)
            yield reader.read(self.block.found.right)

    def _take_eights(
        self, inner: Lowerer, rights: Sequence[Eight], shift: tuple[int, int]
    ) -> None:
        """Add eight terms to every total: what they share is multiplied with their sum."""
        (index,) = self.reduce.indices
        totals = iter(self.totals)
        places = [inner.at[index] + n * LANES for n in range(HALVES)]
        halves = [replace(inner, at={**inner.at, index: at}) for at in places]
        rows = zip(*(self.block.lefts(half) for half in halves), strict=True)
        for number, values in enumerate(rows):
            lefts = [
                self._named_factor(
                    half, "left", value, (number, self.shape.rows), shift, (n, HALVES)
                )
                for n, (half, value) in enumerate(zip(halves, values, strict=True))
            ]
            for right in rights:
                dots = (
                    self._term(half, left, own)
                    for half, left, own in zip(halves, lefts, right.halves, strict=True)
                )
                term = reduce(add, dots)
                if right.same is not None:
                    term = t.Binary("*", right.same, term)
                inner.block.append(accumulate("sum", next(totals), term))

    def _named_factor(
        self, inner: Lowerer, side: str, value: Value, *which: tuple[int, int]
    ) -> Value:
        name = t.Ident(self.builder.name(side + suffix(*which), "turn"))
        inner.block.append(t.Let(name.name, value.expr))
        return Value(name, value.wide)

    def _take(
        self, inner: Lowerer, rights: Sequence[Value], shift: tuple[int, int]
    ) -> None:
        """Add a term to every total, or a vector of four."""
        totals = iter(self.totals)
        for number, value in enumerate(self.block.lefts(inner)):
            left = value
            if len(rights) > 1:
                row = (number, self.shape.rows)
                left = self._named_factor(inner, "left", value, row, shift)
            for right in rights:
                term = self._term(inner, left, right)
                inner.block.append(accumulate("sum", next(totals), term))

    def _term(self, inner: Lowerer, left: Value, right: Value) -> t.Expr:
        """Return the product, or the sum of four neighbours'."""
        if inner.vector is None:
            factors = {LEFT: left, RIGHT: right}
            return replace(inner, locals=factors).lower(self.block.found.term).expr
        wide = (inner.widen(value, self.reduce.type) for value in (left, right))
        return t.call("dot", *wide)

    def _finish(self, at: dict[Index, t.Expr]) -> None:
        """Join the lanes' totals, and let a lane finish each result."""
        shape = self.shape
        rounds = [
            *join_rounds(
                self.builder,
                self.reduce,
                self.totals,
                along=shape.along,
                across=shape.across,
            )
        ]
        for each in rounds:
            body = [*each.before, *self._store(at, each)]
            self.body += body if len(rounds) == 1 else [t.Block(each.comment, (*body,))]

    def _store(self, at: dict[Index, t.Expr], held: Round) -> list[t.Stmt]:
        """Return the steps for the results of a round."""
        s, columns = self.builder, self.shape.columns
        row, inside = self.block.at(held.total // columns)
        places: dict[Index, t.Expr] = dict(row)
        if self.across > 1:
            own = held.group * columns + held.total % columns
            places[self.column] = self.first_column + own
            inside.append(
                t.Ident(s.name(self.column.name)) < s.extent(self.column.extent)
            )
        body: list[t.Stmt] = []
        for index, place in places.items():
            body.append(t.Let(s.name(index.name), place))
            places[index] = t.Ident(s.name(index.name))
        lowerer = Lowerer(s, {**at, **places}, body, label=reduction_label(self.task))
        only = t.all_of(held.holds, *inside)
        finish_steps(lowerer, self.task, self.reduce, Value(held.value), only)
        return body
