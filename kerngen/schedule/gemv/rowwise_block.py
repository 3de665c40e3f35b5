"""Products along the reduction: groups of lanes sum a block of rows and columns each.

The lanes of a group stride along the reduction, where the matrix is contiguous.  What a
lane reads of the matrix it multiplies with every row of its block, and what it reads of
the rows with every column.  For `sum[p] x[p] * w[j, p]` with 128 lanes and `unroll` 2:

    for (var p = lane * 4u; p < whole; p += 1024u) {
        let right_0 = w[group * (u.k >> 2u) + (p >> 2u)];
        let right_1 = w[group * (u.k >> 2u) + ((p + 512u) >> 2u)];
        y_sum += dot(x[p >> 2u], right_0);
        y_sum += dot(x[(p + 512u) >> 2u], right_1);
    }
    ...                                       // the rest of the terms; the lanes are joined
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from kerngen.ir.nodes import Index
from kerngen.plan.size import Literal, Size, ceil_div
from kerngen.schedule.contraction import LEFT, RIGHT
from kerngen.schedule.gemv.row_block import RowBlock, suffix
from kerngen.schedule.gemv.row_statistic import RowStatistic
from kerngen.schedule.gemv.rowwise_join import (
    LaneGroups,
    Round,
    join_at_once,
    join_rounds,
)
from kerngen.schedule.gemv.shape import GemvShape
from kerngen.schedule.gemv.statistic_sums import StatisticSums
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    counted_terms,
    finish_steps,
    reduction_label,
    reduction_of,
    shared_array,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import EVERYWHERE, DispatchShader
from kerngen.schedule.reduce.rowwise import row_trips
from kerngen.schedule.sizes import domain_size, extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


@dataclass
class Rowwise:
    """Builds the shader of a variant, which reads the tensors `names` as vectors.

    A lane takes `width` neighbouring terms of each result at once.  The tensors `words`, of
    narrow integers, are bound as `vec4u`.  Subclasses read longer runs: they override `_rights`
    and `_take`.  With a `statistic`, lanes sum that of each row, too.
    """

    task: Task
    shape: GemvShape
    variant: str
    width: int
    names: set[str]
    words: frozenset[str] = frozenset()
    statistic: RowStatistic | None = None
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        task, shape = self.task, self.shape
        lanes_of = dict.fromkeys(self.names, LANES)
        self.builder = ShaderBuilder(task, lanes_of, words=self.words)
        # Workgroup memory that subclasses take: joining has the rest of 16 KiB.
        self.held_bytes = 0
        self.statistics: StatisticSums | None = None
        if self.statistic is not None:
            self.statistics = StatisticSums(self.builder, self.statistic, shape.rows)
            self.held_bytes = self.statistics.held_bytes
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

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        at = self._place()
        self._accumulate(at)
        self._finish(at)
        columns = domain_size(self.outer) * self._column_blocks
        step = self.shape.along * self.width
        shader = self.builder.finish(
            self.body,
            groups=columns * self.block.needed,
            workgroup_size=self.shape.lanes,
            summary=self._summary(),
            variant="" if self.variant == "aligned" else self.variant,
            terms=counted_terms(self.reduce),
            trips=row_trips(self.task, self.reduce, Literal(step)),
        )
        if self.statistic is None:
            return shader
        own = (step.text for step in self.statistic.stage.steps if step.text)
        return replace(shader, equations=(*own, *shader.equations))

    @property
    def _column_blocks(self) -> Size:
        return ceil_div(extent_size(self.column.extent), self.across)

    def _summary(self) -> str:
        columns = "a column" if self.across == 1 else f"{self.across} columns"
        rows = "" if self.block.row is None else f", {self.block.count} rows at once"
        also = "" if self.statistics is None else ", and for the statistic of each row"
        return f"one workgroup for {columns}{rows}{also}."

    def _place(self) -> dict[Index, t.Expr]:
        """Name the rows and columns of a workgroup; return the values of the indices.

        Workgroups with the same columns and other rows follow each other.
        """
        s, body, block = self.builder, self.body, self.block
        group = s.let(body, "group", linear_group(s))
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
        """Name a value that takes arithmetic; a literal or a name is returned as it is."""
        if not isinstance(value, t.Binary):
            return value
        return self.builder.let(self.body, wanted, value)

    def _columns(self, at: dict[Index, t.Expr]) -> list[t.Expr]:
        """Name the columns of this lane; one past the last is the last one."""
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

    @property
    def _along(self) -> t.Expr:
        """The place of a lane in its group."""
        alone = self.shape.across == 1
        return self.builder.lane if alone else self.builder.lane % self.shape.along

    def _start(self, at: dict[Index, t.Expr]) -> list[t.Expr]:
        """Name this lane's columns, and begin its sums."""
        columns = self._columns(at)
        zero = identity(self.builder, "sum", self.reduce.type)
        self.body += [t.Var(total.name, zero) for total in self.totals]
        if self.statistics is not None:
            self.body += self.statistics.start()
        return columns

    def _accumulate(self, at: dict[Index, t.Expr]) -> None:
        """Let each lane sum its terms of every row and column."""
        s, indices = self.builder, self.reduce.indices
        columns = self._start(at)
        single = len(indices) == 1
        name = s.name(indices[0].name) if single else s.fresh("term")
        size, step = s.size(indices), self.shape.along * self.width
        start = self._along * self.width
        turns = self.shape.unroll if single else 1

        def turn(shifts: Sequence[int]) -> list[t.Stmt]:
            return self._turn(at, columns, t.Ident(name), shifts)

        # Turns that need no test for the end of the terms, then the rest one by one.
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
        """Return a turn's statements: read the matrix, then the rows, and add.

        All reads of the matrix come first, so that they are under way together.
        """
        s, indices = self.builder, self.reduce.indices
        body: list[t.Stmt] = []
        vector = indices[-1] if self.names else None
        label = reduction_label(self.task)
        lowerer = Lowerer(s, at, body, vector=vector, label=label, counts_vectors=True)
        # Reads of the matrix, for each term, or vector of them, of the turn.
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
            rights.append([*self._rights(inners[-1], columns, where)])
        for number, inner in enumerate(inners):
            self._take(inner, rights[number], (number, len(shifts)))
            if self.statistics is not None:
                self._take_statistics(self.statistics, inner, (number, len(shifts)))
        return body

    def _take_statistics(
        self, sums: StatisticSums, inner: Lowerer, shift: tuple[int, int]
    ) -> None:
        """Add the terms of a run to the sum of every row."""
        last, count = self.reduce.indices[-1], max(self.width // LANES, 1)
        for number in range(count):
            place = inner.at[last] + number * LANES
            there = replace(inner, at={**inner.at, last: place})
            sums.take(self.block.at_rows(there), shift, (number, count))

    def _rights(
        self, inner: Lowerer, columns: list[t.Expr], shift: tuple[int, int]
    ) -> Iterator[Any]:
        """Read the right factor of every column, once for all rows."""
        for number, column in enumerate(columns):
            there = replace(inner, at={**inner.at, self.column: column})
            value = there.lower(self.block.found.right)
            yield self._named_factor(
                inner, "right", value, (number, len(columns)), shift
            )

    def _named_factor(
        self, inner: Lowerer, side: str, value: Value, *which: tuple[int, int]
    ) -> Value:
        """Name a factor; in the name space "turn", every loop has the same names."""
        name = t.Ident(self.builder.name(side + suffix(*which), "turn"))
        inner.block.append(t.Let(name.name, value.expr))
        return Value(name, value.wide)

    def _take(
        self, inner: Lowerer, rights: Sequence[Any], shift: tuple[int, int]
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
        """Join the lanes' totals, and let a lane do the stage's steps for each result."""
        if self.statistics is None:
            rounds = [
                *join_rounds(self.builder, self.reduce, self.totals, self._groups)
            ]
        else:
            rounds = self._rounds_with(self.statistics)
        for each in rounds:
            body = [*each.before, *self._store(at, each)]
            self.body += body if len(rounds) == 1 else [t.Block(each.comment, (*body,))]

    @property
    def _groups(self) -> LaneGroups:
        """The groups of lanes that join their totals."""
        room = EVERYWHERE.workgroup_bytes - self.held_bytes
        return LaneGroups(self.shape.along, self.shape.across, room)

    @property
    def _statistic_groups(self) -> LaneGroups:
        """The groups of lanes that join the sums for statistics: each has all terms."""
        return self._groups

    def _rounds_with(self, sums: StatisticSums) -> list[Round]:
        """Join the sums for statistics; return the rounds of the totals that are left to do.

        Totals and these sums are joined in one round if there is room for it.  All groups of
        lanes have the same sums, of which the first group stores its own for all.
        """
        s, reduce, count = self.builder, self.reduce, len(self.totals)
        groups, own = self._groups, self._statistic_groups
        every = (*self.totals, *sums.totals)
        once = join_at_once(s, reduce, every, groups) if groups == own else None
        if once is not None:
            self.body += [*once.before, sums.store(once, count, own), t.BARRIER]
            holds = t.all_of(once.holds, once.total < count)
            return [replace(once, before=[], holds=holds)]
        sizes = groups.elements(count), own.elements(len(sums.totals))
        shared = shared_array(s, reduce, max(sizes))
        for each in join_rounds(s, reduce, sums.totals, own, shared):
            body = (*each.before, sums.store(each, 0, own))
            self.body.append(t.Block("the statistics of the rows", body))
        self.body.append(t.BARRIER)
        return [*join_rounds(s, reduce, self.totals, groups, shared)]

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
        # The row and column of the result, by their own names: `let i = first + ...`.
        body: list[t.Stmt] = []
        for index, place in places.items():
            body.append(t.Let(s.name(index.name), place))
            places[index] = t.Ident(s.name(index.name))
        lowerer = Lowerer(s, {**at, **places}, body, label=reduction_label(self.task))
        only = t.all_of(held.holds, *inside)
        known = partial(self._known, held)
        finish_steps(lowerer, self.task, self.reduce, Value(held.value), only, known)
        return body

    def _known(self, held: Round, lowerer: Lowerer) -> dict[str, Value]:
        """Write and return the local values that the stage's steps read, by their names."""
        if self.statistics is None:
            return {}
        return self.statistics.known(held.total // self.shape.columns, lowerer)
