"""Products along the result: blocks of columns, for a block of rows at once.

Lanes are along the columns, where the matrix is contiguous, with four columns each.  The
lanes of one column form *slices*: each slice takes four neighbouring terms in a turn.  The
terms may be cut into parts for several workgroups, which a second dispatch joins.  For
`sum[p] x[p] * w[p, j]`, with 16 slices of 16 lanes:

    let slice = lane >> 4u;
    let j = group % column_blocks * 64u + (lane & 15u) * 4u;
    for (var p = (part * 16u + slice) * 4u; p < u.n; p += count * 16u * 4u) {
        let right_0 = w[p * (u.k >> 2u) + (j >> 2u)];
        ...                                               // of terms p + 1 to p + 3
        let left = x[p >> 2u];
        y_sum += left.x * right_0;
        ...
    }
    partial[lane] = y_sum;
    workgroupBarrier();
    if (slice < 1u && j < u.k) { ... }                    // add up the slices, and store

Of several rows, each has a total of its own.  Where the left factor lies along the rows, as in
`sum[p] x[p, i] * w[p, j]`, four rows at one term are a vector:

    let left_0 = x[p * (u.m >> 2u) + (first >> 2u)];
    y_sum_0 += left_0.x * right_0;
    y_sum_1 += left_0.y * right_0;
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    ONE,
    Guard,
    Size,
    all_of,
    ceil_div,
    compare,
)
from kerngen.plan.tree import Scratch
from kerngen.schedule.contraction import (
    LEFT,
    RIGHT,
    Contraction,
    contraction_of,
    memory_axis,
)
from kerngen.schedule.gemv.row_block import RowBlock, suffix
from kerngen.schedule.gemv.shape import GemvShape
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    BYTES,
    counted_terms,
    finish_steps,
    reduction_label,
    reduction_of,
    shared_array,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity, in_pairs
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.ranges import terms_in_order
from kerngen.schedule.lowering.steps import (
    last_extents,
    tensors_in_runs,
    vector_tensors,
)
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.program import EVERYWHERE, DispatchShader, Variant
from kerngen.schedule.reduce.columnwise import MAX_PARTS, finish_shader
from kerngen.schedule.sizes import (
    all_divisible,
    domain_size,
    extent_size,
    loop_trips,
    to_wgsl,
)
from kerngen.schedule.split import Split
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

TERMS: Final = 4
"""How many terms a lane takes in a turn: as many as a vector of the rows has."""

PART: Final = 512
LONG_PART: Final = 1024
FEW_ROWS: Final = 2
"""A part has 512 terms for up to 2 rows, and 1024 for more."""

SHORT_NAMES: Final = {
    "aligned": "short",
    "columns": "short_columns",
    "edge": "short_edge",
}
"""The names of the variants whose terms make one part."""


@final
@dataclass(frozen=True, slots=True)
class _Reading:
    """How a variant reads: the tensors `names` as vectors, under the condition `when`.

    `in_fours` is whether the last index of the terms has a multiple of four, so that none are
    left, and `by_rows` whether vectors of the left factor are of four rows, not of four terms.
    """

    name: str
    when: Guard
    names: frozenset[str]
    in_fours: bool = False
    by_rows: bool = False


def lower_columnwise_block(task: Task, shape: GemvShape) -> Iterator[Variant]:
    """Yield the variants of a product along the result: vectors first, any size last.

    Variants of one dispatch come first, for terms that make one part.
    """
    split = _split_of(task, shape)
    short = ALWAYS if split is None else compare("<=", split.count, 1)
    for reading in _readings(task, shape, one_part=True):
        name = reading.name if split is None else SHORT_NAMES[reading.name]
        shader = _Columnwise(task, shape, reading, None).shader(name)
        yield Variant(name, all_of(short, reading.when), (shader,))
    if split is None:
        return
    for reading in _readings(task, shape, one_part=False):
        first = _Columnwise(task, shape, reading, split).shader(reading.name)
        length = domain_size(task.domain) * split.count
        scratch = Scratch(task.scratch_name("parts"), length)
        finish = task.once(finish_shader, partial(finish_shader, task, split))
        shaders = (first, finish)
        yield Variant(reading.name, reading.when, shaders, (scratch,))


def _contraction(task: Task) -> Contraction:
    found = contraction_of(task)
    assert not isinstance(found, str), found
    return found


def _split_of(task: Task, shape: GemvShape) -> Split | None:
    """Return how the terms of a column are cut into parts; None if they are not."""
    indices = reduction_of(task).indices
    if shape.split == 1:
        return None
    if shape.split is not None:
        return Split(indices, 1, shape.split)
    return Split(indices, PART if shape.rows <= FEW_ROWS else LONG_PART, MAX_PARTS)


def _readings(task: Task, shape: GemvShape, *, one_part: bool) -> Iterator[_Reading]:
    """Yield ways to read: `aligned`, `columns` and `edge`.

    They read the matrix and the rows as vectors, the matrix alone, or neither.  With a single
    part, the shader writes the result itself, in vectors too.
    """
    column, over = task.domain[-1], reduction_of(task).indices[-1]
    stage, body = task.stage, (reduction_of(task).body,)
    values = task.values if one_part else body
    read = tensors_in_runs(body, column)
    right = vector_tensors(stage, values, column) if one_part else read
    if right & read:
        extents = [column.extent, *last_extents(stage, values, right)]
        left, row = _left_vectors(task, shape, over)
        along = last_extents(stage, body, left)
        along += [row.extent] if row else []
        both = all_divisible([*extents, *along], LANES)
        alone = all_divisible(extents, LANES)
        in_fours = over.extent in along
        if both != NEVER:
            names = frozenset(right | left)
            yield _Reading("aligned", both, names, in_fours, row is not None)
        if alone not in (NEVER, both):
            yield _Reading("columns", alone, frozenset(right))
    yield _Reading("edge", ALWAYS, frozenset())


def _left_vectors(
    task: Task, shape: GemvShape, over: Index
) -> tuple[set[str], Index | None]:
    """Return the tensors of the left factor that are read as vectors, and the row or None.

    They are vectors of four rows if the factor lies along its rows, as `a[p, i] * w[p]` does, and
    a block has whole vectors of rows; else, with None, vectors of four terms.
    """
    found = _contraction(task)
    row = found.row if shape.rows % LANES == 0 else None
    if row is None or memory_axis(found.left, over, row) != row:
        return tensors_in_runs((found.left,), over), None
    return tensors_in_runs((found.left,), row), row


@final
@dataclass
class _Columnwise:
    """Writes the first dispatch of a variant, which is the only one if there are no parts.

    A workgroup has `slices` slices of `across` lanes, and `columns` columns, `width` of each
    lane.
    """

    task: Task
    shape: GemvShape
    reading: _Reading
    split: Split | None
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        task, shape, names = self.task, self.shape, self.reading.names
        # Without vectors a lane has one column: four times as many lanes are across.
        self.width = LANES if names else 1
        self.lanes = shape.lanes
        self.across = min(shape.across * LANES // self.width, self.lanes)
        self.slices = self.lanes // self.across
        self.columns = self.across * self.width
        scratch = {task.scratch_name("parts")} if self.split and names else set[str]()
        self.builder = ShaderBuilder(task, dict.fromkeys(names | scratch, LANES))
        step = LANES if self.reading.by_rows else 1
        self.block = RowBlock(self.builder, task, shape.rows, step)
        self.reduce = reduction_of(task)
        *outer, self.column = self.block.outer(task.domain)
        self.batch = tuple(outer)
        label = f"{reduction_label(task)}_{self.reduce.kind}"
        self.totals = tuple(
            t.Ident(self.builder.fresh(label + suffix((number, shape.rows))))
            for number in range(shape.rows)
        )
        self.parts: t.Expr = t.ONE
        self.part: t.Expr = t.ZERO
        self.slice = t.Ident(self.builder.fresh("slice"))

    def shader(self, variant: str) -> DispatchShader:
        """Return the shader of the first dispatch, of a variant of this name."""
        at = self._place()
        inside = at[self.column] < self._extent
        self._accumulate(at, inside)
        self._join(at, inside)
        parts = domain_size(self.batch) * self._part_count
        return self.builder.finish(
            self.body,
            groups=parts * self._column_blocks * self.block.needed,
            workgroup_size=self.lanes,
            summary=self._summary(),
            variant="" if variant == "aligned" else variant,
            terms=counted_terms(self.reduce),
            trips=loop_trips(self.task, {self.reduce: self._trips()}),
        )

    def _summary(self) -> str:
        rows = "" if self.block.row is None else f", {self.block.count} rows at once"
        what = f"{self.columns} columns per workgroup, in {self.slices} slices{rows}."
        return f"first of two dispatches: a part of {what}" if self.split else what

    def _trips(self) -> Size:
        """Return how often the loops of a lane run: over fours of terms, then the rest."""
        shared = self._part_count * (self.slices * TERMS)
        # A loop in fours, and up to three turns of single terms for the rest.
        return ceil_div(domain_size(self.reduce.indices), shared) + (TERMS - 1)

    @property
    def _part_count(self) -> Size:
        return self.split.count if self.split else ONE

    @property
    def _column_blocks(self) -> Size:
        return ceil_div(extent_size(self.column.extent), self.columns)

    @property
    def _extent(self) -> t.Expr:
        return self.builder.extent(self.column.extent)

    def _place(self) -> dict[Index, t.Expr]:
        """Name the rows and the columns of this lane, and its part of the terms."""
        s, body = self.builder, self.body
        # Workgroups are numbered by block of rows, block of columns, part of the terms, and
        # batch, the first one changing fastest.
        group = s.let(body, "group", linear_group(s))
        if self.split:
            self.parts = s.let(body, "count", to_wgsl(self.split.count, s))
        across = s.let(body, "column_blocks", to_wgsl(self._column_blocks, s))
        blocks: t.Expr = t.ONE
        line: t.Expr = group
        if self.block.row is not None:
            blocks = s.let(body, "blocks", to_wgsl(self.block.needed, s))
            line = group // blocks
        size = s.size(self.batch) * self.parts * across * blocks
        # A grid folded into two dimensions may have more workgroups than there is work.
        body += [
            t.If(group >= size, (t.Return(),)),
            *self.block.place(group % blocks),
            t.Let(self.slice.name, s.lane // self.across),
        ]
        outer = line // across
        if self.split:
            place = outer % self.parts if self.batch else outer
            self.part = s.let(body, "part", place)
            outer = outer // self.parts
        at = unravel(s, body, self.batch, outer)
        name = s.name(self.column.name)
        first = line % across * self.columns
        body.append(t.Let(name, first + s.lane % self.across * self.width))
        return {**at, self.column: t.Ident(name)}

    # The terms

    def _accumulate(self, at: dict[Index, t.Expr], inside: t.Expr) -> None:
        """Let each lane sum the terms of its slice, of every row."""
        s, width = self.builder, self.width
        zero = identity(s, "sum", self.reduce.type, width)
        self.body += [t.Var(total.name, zero) for total in self.totals]
        name, along = terms_in_order(Lowerer(s, at, self.body), self.reduce)
        counter, end = t.Ident(name), along.end
        start = self.part * self.slices + self.slice
        stride = self.parts * self.slices
        # Terms in fours; then, if their number is no multiple of four, the rest one by one.
        in_fours: t.Expr = end
        if not self.reading.in_fours:
            in_fours = s.let(self.body, "in_fours", end // TERMS * TERMS)
        four = self._turn(at, counter, TERMS)
        loops = [t.count_up(name, start * TERMS, in_fours, stride * TERMS, *four)]
        if not self.reading.in_fours:
            one = self._turn(at, counter, 1)
            loops.append(t.count_up(name, in_fours + start, end, stride, *one))
        self.body.append(t.If(inside, tuple(loops)))

    def _turn(
        self, at: dict[Index, t.Expr], counter: t.Ident, count: int
    ) -> list[t.Stmt]:
        """Return the statements that add `count` terms to every row's total."""
        body: list[t.Stmt] = []
        label = reduction_label(self.task)
        lowerer = Lowerer(self.builder, at, body, label=label, counts_vectors=True)
        terms = [
            replace(lowerer, at={**at, **place})
            for place in self._places(body, counter, count)
        ]
        # The matrix first, once for all rows; then each row's terms.
        rights = [
            self._right(term, suffix((number, count)))
            for number, term in enumerate(terms)
        ]
        for row, total in zip(self._lefts(terms), self.totals, strict=True):
            for left, right in zip(row, rights, strict=True):
                factors = {LEFT: Value(left), RIGHT: right}
                term = replace(lowerer, locals=factors, vector=self._vector)
                body.append(accumulate("sum", total, self._term(term)))
        return body

    def _lefts(self, terms: list[Lowerer]) -> list[list[t.Expr]]:
        """Read the left factor of each row, and of each term of a turn.

        Four rows are one vector, or four terms if they are neighbours.
        """
        rows, count = range(self.shape.rows), len(terms)
        if self.reading.by_rows:
            fours = [
                self._named_lefts(
                    replace(term, vector=self.block.row), suffix((number, count))
                )
                for number, term in enumerate(terms)
            ]
            return [
                [four[row // LANES].lane(COMPONENTS[row % LANES]) for four in fours]
                for row in rows
            ]
        if self._are_neighbours:
            vector = self.reduce.indices[-1] if count > 1 else None
            along = self._named_lefts(replace(terms[0], vector=vector))
            return [[left.lane(x) for x in COMPONENTS[:count]] for left in along]
        each = [self.block.lefts(term) for term in terms]
        return [[lefts[row].expr for lefts in each] for row in rows]

    @property
    def _are_neighbours(self) -> bool:
        """Whether the terms of a turn differ in the last index alone."""
        return len(self.reduce.indices) == 1 or self.reading.in_fours

    def _places(
        self, body: list[t.Stmt], counter: t.Ident, count: int
    ) -> Iterator[dict[Index, t.Expr]]:
        """Yield the index values of `count` terms, from term `counter` on."""
        if not self._are_neighbours:
            for number in range(count):
                yield self._unravel(body, counter + number, suffix((number, count)))
            return
        first, last = self._unravel(body, counter, ""), self.reduce.indices[-1]
        for number in range(count):
            yield {**first, last: first[last] + number}

    def _unravel(
        self, body: list[t.Stmt], position: t.Expr, which: str
    ) -> dict[Index, t.Expr]:
        """Return the index values of a term; those of several indices are named."""
        indices = self.reduce.indices
        if len(indices) == 1:
            return {indices[0]: position}
        return unravel(self.builder, body, indices, position, which)

    @property
    def _vector(self) -> Index | None:
        return self.column if self.reading.names else None

    def _right(self, lowerer: Lowerer, which: str) -> Value:
        """Read the right factor, once for all rows."""
        there = replace(lowerer, vector=self._vector)
        value = there.lower(self.block.found.right)
        name = t.Ident(self.builder.name(f"right{which}", "turn"))
        lowerer.block.append(t.Let(name.name, value.expr))
        return Value(name, value.wide)

    def _named_lefts(self, lowerer: Lowerer, which: str = "") -> list[Value]:
        """Read the left factor of the block's rows, and name what are vectors."""
        lefts = self.block.lefts(lowerer)
        return [
            self._named(lowerer, value, suffix((number, len(lefts))) + which)
            for number, value in enumerate(lefts)
        ]

    def _named(self, lowerer: Lowerer, value: Value, which: str) -> Value:
        if not value.wide:
            return value
        name = t.Ident(self.builder.name(f"left{which}", "turn"))
        lowerer.block.append(t.Let(name.name, value.expr))
        return Value(name, wide=True)

    def _term(self, lowerer: Lowerer) -> t.Expr:
        value = lowerer.lower(self.block.found.term)
        if lowerer.vector is None:
            return value.expr
        return lowerer.widen(value, self.reduce.type)

    # The results

    def _join(self, at: dict[Index, t.Expr], inside: t.Expr) -> None:
        """Join the slices' totals through workgroup memory, and store the results.

        As many rows as fit 16 KiB, which all adapters have, are joined at once: slice n adds
        up the totals of row n.
        """
        s, lane_bytes = self.builder, self.width * BYTES
        most = EVERYWHERE.workgroup_bytes // (self.lanes * lane_bytes)
        most = min(len(self.totals), self.slices, most)
        shared = shared_array(s, self.reduce, self.lanes * most, self.width)
        for first in range(0, len(self.totals), most):
            totals = self.totals[first : first + most]
            before: list[t.Stmt] = [t.BARRIER] if first else []
            before += [
                t.Assign(shared[s.lane + number * self.lanes], total)
                for number, total in enumerate(totals)
            ]
            before.append(t.BARRIER)
            held = [*self._sum_slices(shared), *self._store(at, first)]
            mine = t.all_of(self.slice < len(totals), inside)
            self.body += [*before, t.If(mine, tuple(held))]

    def _sum_slices(self, shared: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that add up a row's partial sums, one from each slice.

        The lanes of slice n do so for row n, each for its own columns.
        """
        s = self.builder
        own, other, joined = (
            t.Ident(s.name(name, "join")) for name in ("own", "other", "joined")
        )
        yield t.Let(own.name, self.slice * self.lanes + s.lane % self.across)
        yield t.Var(joined.name, identity(s, "sum", self.reduce.type, self.width))
        count = min(self.slices, TERMS)
        values = [shared[own + (other + n) * self.across] for n in range(count)]
        take = accumulate("sum", joined, in_pairs("sum", values))
        yield t.count_up(other.name, 0, t.u32(self.slices), count, take)

    def _store(self, at: dict[Index, t.Expr], first: int) -> list[t.Stmt]:
        """Return the statements that store a row's sums: the stage's steps, or a part."""
        s = self.builder
        row, inside = self.block.at(self.slice + first)
        body: list[t.Stmt] = []
        for index, place in row.items():
            body.append(t.Let(s.name(index.name), place))
            row[index] = t.Ident(s.name(index.name))
        joined = t.Ident(s.name("joined", "join"))
        places = {**at, **row}
        # A single part does the stage's steps; one of several stores its sums to scratch.
        if self.split is None:
            label = reduction_label(self.task)
            lowerer = Lowerer(s, places, body, self._vector, label=label)
            value = Value(joined, wide=self._vector is not None)
            only = t.all_of(*inside) if inside else None
            finish_steps(lowerer, self.task, self.reduce, value, only)
            return body
        parts = s.scratch("parts", self.reduce.type, written=True)
        *outer, _ = self.task.domain
        extents = tuple(index.extent for index in outer)
        line = row_major(s, extents, [places[index] for index in outer])
        element = (line * self.parts + self.part) * self._extent + at[self.column]
        store = parts.store(element // self.width, joined)
        return [*body, t.If(t.all_of(*inside), (store,)) if inside else store]
