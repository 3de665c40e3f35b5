"""Strategy `reduce` along columns: `y[j] = sum[i] x[i, j]`.

Neighbouring lanes have neighbouring columns j, so that they read contiguous memory.  The
terms of a column are cut into parts, a workgroup for each, and a workgroup's lanes into
slices, which take the terms in turn.  By single columns, with one part:

    lane        0 .. 63     64 .. 127    128 .. 191    192 .. 255
    columns     0 .. 63     0 .. 63      0 .. 63       0 .. 63
    slice       0           1            2             3
    terms i     0, 4, ...   1, 5, ...    2, 6, ...     3, 7, ...

Of fewer columns there are more slices: 25 slices of 10 lanes for 10 columns.  At the end the
slices are joined, in workgroup memory.  A second dispatch joins the parts, in slices, too; a
single part needs none (`short`).  On an H200, 64 rows of 151,296 columns take 12.7 us so, by
two dispatches 16.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.analysis.reads import loads
from kerngen.ir.nodes import Index, Reduce
from kerngen.ir.staging.stages import Write
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    ONE,
    Guard,
    Literal,
    Size,
    all_of,
    ceil_div,
    compare,
    maximum,
    minimum,
    quotient,
)
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.argmax import partial_type, term_of
from kerngen.schedule.lowering.blocks import Blocks, accumulate_blocks
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    counted_terms,
    finish_steps,
    reduction_label,
    reduction_of,
    shared_array,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import combine
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.ranges import terms_in_order
from kerngen.schedule.lowering.steps import last_extents, tensors_in_runs
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.reduce.rowwise import row_trips
from kerngen.schedule.sizes import (
    all_divisible,
    at_most,
    domain_size,
    extent_size,
    loop_trips,
    to_wgsl,
)
from kerngen.schedule.split import Split
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

LANES_PER_GROUP: Final = 256
"""The lanes of a workgroup."""

COLUMNS: Final = 64
"""The most columns of a workgroup: 64 lanes of one, or 16 lanes of a vector of four."""

PART: Final = 256
"""How many terms of each of 64 columns make a part, while there are at most `MAX_PARTS`."""

MAX_PARTS: Final = 512
"""The most parts of a column: longer columns have longer parts."""

AT_ONCE: Final = {1: 8, LANES: 4}
"""How many terms (vectors of four columns) a lane reads before it adds any, so that it waits once.

On an H200, the sums of 10 columns of 1,000,000 rows take 17 us, 21 with 4 of single columns.
Terms that read several elements, which are under way together anyway, are fewer: of products of
two, 4 (2) take no longer, and the shader is shorter.
"""

PARTS_AT_ONCE: Final = 4
"""The same for the parts of a column: up to 128 of them are read at once."""

FINISH_SLICES: Final = 32
"""The most slices of the second dispatch."""


def lower_columnwise(task: Task) -> Iterator[Variant]:
    """Yield the variants: by one dispatch where the terms make one part, then by two.

    Of both, one reads vectors of four columns, and one is for any size.
    """
    column, body = task.domain[-1], (reduction_of(task).body,)
    # Places are found one by one: no vector holds those of four columns.
    finds_place = reduction_of(task).finds_place
    names = set[str]() if finds_place else tensors_in_runs(body, column)
    extents = [column.extent, *last_extents(task.stage, body, names)]
    aligned = all_divisible(extents, LANES) if names else NEVER
    short = at_most(reduction_of(task).indices, PART)
    if (
        short != ALWAYS
    ):  # Else the terms are a literal number, and one part in every call.
        short = compare("<=", split_of(task).count, 1)
    if aligned != NEVER:
        yield _short_variant(task, "short", all_of(aligned, short), names)
    yield _short_variant(task, "short_edge", short, set())
    if aligned != NEVER:
        yield _variant(task, "aligned", aligned, names)
    yield _variant(task, "edge", ALWAYS, set())


def _short_variant(task: Task, name: str, when: Guard, names: set[str]) -> Variant:
    """Return a variant of one dispatch, for columns of one part."""
    return Variant(name, when, (_first_shader(task, names, variant=name),))


def _variant(task: Task, name: str, when: Guard, names: set[str]) -> Variant:
    """Return a variant of two dispatches, with the buffer of the parts between them."""
    words, split = value_bytes(partial_type(reduction_of(task))) // 4, split_of(task)
    length = domain_size(task.domain) * split.count * words
    scratch = Scratch(task.scratch_name("parts"), length)
    first = _first_shader(task, names, split, variant="" if names else "edge")
    finish = task.once((finish_shader, split), lambda: finish_shader(task, split))
    return Variant(name, when, (first, finish), (scratch,))


def split_of(task: Task) -> Split:
    """Return how the terms of each column are cut into parts for workgroups.

    Of fewer than `COLUMNS` columns, a part has more terms of each.
    """
    columns = minimum(maximum(extent_size(task.domain[-1].extent), 1), COLUMNS)
    terms = quotient(PART * COLUMNS, columns)
    return Split(reduction_of(task).indices, terms, MAX_PARTS)


def _write_count(shader: ShaderBuilder, body: list[t.Stmt], split: Split) -> t.Ident:
    """Return the variable of the number of parts, after writing it.

    How many terms a part has is written before it, if that depends on sizes.
    """
    named = dict[Size, t.Expr]()
    if not isinstance(split.size, (int, Literal)):
        terms = to_wgsl(split.size, shader)
        named[split.size] = shader.let(body, "terms", terms)
    return shader.let(body, "count", to_wgsl(split.count, shader, named))


# The slices of a workgroup


@final
@dataclass(frozen=True)
class Slices:
    """How the lanes of a workgroup lie: `count` slices of `across` neighbouring lanes each.

    `own` is the number of this lane's slice.  Lanes beyond the last slice, as the last of 256
    where 5 are across, belong to none.
    """

    shader: ShaderBuilder
    across: t.Operand
    count: t.Operand
    own: t.Ident

    @classmethod
    def lay(
        cls,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        across: Size,
        named: Mapping[Size, t.Expr] | None = None,
    ) -> Slices:
        """Write how many lanes a slice has, and the number of this lane's slice.

        `named` has variables of the shader for some sizes.
        """
        lanes: t.Operand
        count: t.Operand
        if isinstance(across, Literal):
            lanes, count = across.value, LANES_PER_GROUP // across.value
        else:
            lanes = shader.let(body, "across", to_wgsl(across, shader, named))
            count = shader.let(body, "slices", t.u32(LANES_PER_GROUP) // lanes)
        own = shader.let(body, "slice", shader.lane // lanes)
        return cls(shader, lanes, count, own)

    def within(self, condition: t.Expr) -> t.Expr:
        """Return the condition that the lane belongs to a slice, too: others need not read."""
        match self.across, self.count:
            case int(across), int(count) if across * count == LANES_PER_GROUP:
                return condition
            case _:
                return t.all_of(condition, self.own < self.count)

    @property
    def place(self) -> t.Expr:
        """The place of a lane in its slice."""
        return self.shader.lane % self.across

    def join(
        self, reduce: Reduce, total: t.Expr, width: int
    ) -> tuple[t.Expr, list[t.Stmt]]:
        """Return the array in workgroup memory whose first elements have the joined totals.

        Behind it are the statements that join them, in a tree with a barrier for each step:

            for (var held = slices; held > 1u; held = (held + 1u) >> 1u) {
                let half = (held + 1u) >> 1u;
                if (slice + half < held) { partial[lane] += partial[lane + half * across]; }
                workgroupBarrier();
            }
        """
        shader = self.shader
        held, half = (t.Ident(shader.name(name, "join")) for name in ("held", "half"))
        partial = shared_array(shader, reduce, LANES_PER_GROUP, width)
        lane, more = shader.lane, (held + 1) // 2
        other = partial[lane + half * self.across]
        merge = t.Assign(partial[lane], combine(reduce.kind, partial[lane], other))
        step = (
            t.Let(half.name, more),
            t.If(self.own + half < held, (merge,)),
            t.BARRIER,
        )
        again = t.Assign(held, more)
        loop = t.For(held.name, t.lift(self.count), held > 1, again, step)
        return partial, [t.Assign(partial[lane], total), t.BARRIER, loop]


# The first dispatch


def _first_shader(
    task: Task, names: set[str], split: Split | None = None, *, variant: str
) -> DispatchShader:
    """Return the first shader: a workgroup has a part of 64 columns, or of all if fewer.

    Without `split` a column is one part, and the shader does the stage's steps itself.

    In WGSL, for `y[j] = sum[i] x[i, j]` by single columns, but for the terms read at once:

        let count = ...; let blocks = ...;              // parts; blocks of 64 columns
        let group = workgroup.y * grid.x + workgroup.x;
        let across = min(u.n, 64u);
        let slices = 256u / across;
        let slice = lane / across;
        let j = group % blocks * 64u + lane % across;
        var y_sum = 0.0;
        for (var i = (group / blocks) * slices + slice; i < u.m; i += count * slices) {
            y_sum += x[i * u.n + j];
        }
    """
    width = LANES if names else 1
    reduce = reduction_of(task)
    *outer, column = task.domain
    shader = ShaderBuilder(task, dict.fromkeys(_wide(task, names, split), LANES))
    length = extent_size(column.extent)
    columns = ceil_div(length, COLUMNS)
    across = minimum(ceil_div(length, width), COLUMNS // width)
    in_a_group = quotient(LANES_PER_GROUP, maximum(across, 1))
    body: list[t.Stmt] = []
    count: t.Expr = _write_count(shader, body, split) if split else t.ONE
    line, first = _write_group(shader, body, tuple(outer), columns, count)
    slices = Slices.lay(shader, body, across)
    row, part = (line // count, line % count) if outer else (t.ZERO, line)
    at = unravel(shader, body, tuple(outer), row)
    at[column] = t.Ident(shader.name(column.name))
    body.append(t.Let(shader.name(column.name), first + slices.place * width))
    vector = column if names else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    # Lanes past the last column have no terms, but take part in the barriers.
    inside = slices.within(at[column] < shader.extent(column.extent))
    parts = (part if split else t.ZERO, count)
    total = _own_terms(lowerer, reduce, parts, slices, inside)
    partial, joined = slices.join(reduce, total, width)
    body += joined
    if split is None:
        _finish_columns(lowerer, task, first, partial)
    else:
        _store_part(lowerer, task, line, slices, partial[shader.lane])
    of = "first of two dispatches: a part of " if split else ""
    part_count = split.count if split else ONE
    return shader.finish(
        body,
        groups=domain_size(outer) * part_count * columns,
        workgroup_size=LANES_PER_GROUP,
        summary=f"{of}{COLUMNS} columns per workgroup.",
        variant=variant,
        terms=counted_terms(reduce),
        trips=row_trips(task, reduce, part_count * in_a_group),
    )


def _wide(task: Task, names: set[str], split: Split | None) -> set[str]:
    """Return the names of the tensors that are bound as vectors of four.

    What the steps write, they write by single elements: it is read as four of them.
    """
    if split is None:
        steps = task.stage.steps
        return names - {step.tensor.name for step in steps if isinstance(step, Write)}
    return names | {task.scratch_name("parts")} if names else names


def _write_group(
    shader: ShaderBuilder,
    body: list[t.Stmt],
    outer: tuple[Index, ...],
    columns: Size,
    count: t.Expr,
) -> tuple[t.Expr, t.Expr]:
    """Write the workgroup's number, and a return if there is no such one.

    The number is outer row, part, block of columns, from high to low; returned are row and
    part as one number, and the first column of the block.
    """
    blocks = shader.let(body, "blocks", to_wgsl(columns, shader))
    group = shader.let(body, "group", linear_group(shader))
    groups = shader.size(outer) * count * blocks
    body.append(t.If(group >= groups, (t.Return(),)))
    return group // blocks, group % blocks * COLUMNS


def _store_part(
    lowerer: Lowerer, task: Task, line: t.Expr, slices: Slices, total: t.Expr
) -> None:
    """Store the totals of a part; those of part `line` lie behind those of `line - 1`."""
    shader, column = lowerer.shader, task.domain[-1]
    own, extent = lowerer.at[column], shader.extent(column.extent)
    parts = shader.scratch("parts", partial_type(reduction_of(task)), written=True)
    place = (line * extent + own) // (LANES if lowerer.vector else 1)
    first_slice = t.all_of(slices.own.equals(0), own < extent)
    lowerer.block.append(t.If(first_slice, (parts.store(place, total),)))


def _finish_columns(
    lowerer: Lowerer, task: Task, first: t.Expr, partial: t.Expr
) -> None:
    """Do the stage's steps for the columns of a workgroup, from `first` on: a lane for each.

    The first elements of `partial` have the totals; vectors have those of four columns.
    """
    shader, column = lowerer.shader, task.domain[-1]
    own, whole = t.Ident(shader.fresh(column.name)), partial[shader.lane]
    if lowerer.vector:
        whole = partial[shader.lane // LANES][shader.lane % LANES]
    lowerer.block.append(t.Let(own.name, first + shader.lane))
    exists = t.all_of(shader.lane < t.u32(COLUMNS), own < shader.extent(column.extent))
    single = replace(lowerer, at={**lowerer.at, column: own}, vector=None)
    finish_steps(single, task, reduction_of(task), Value(whole), exists)


def _own_terms(
    lowerer: Lowerer,
    reduce: Reduce,
    parts: tuple[t.Expr, t.Expr],
    slices: Slices,
    inside: t.Expr,
) -> t.Ident:
    """Write a lane's loop over its terms, if it is `inside`; return the variable of its total.

    `parts` has the number of the workgroup's part, and the number of parts.
    """
    shader, width = lowerer.shader, LANES if lowerer.vector else 1
    total = t.Ident(shader.fresh(f"{lowerer.label}_{reduce.kind}"))
    (part, count), reads = parts, len(frozenset(loads(reduce.body)))
    at_once = max(AT_ONCE[width] // max(reads, 1), 1)
    counter, along = terms_in_order(lowerer, reduce)

    def term(at: t.Ident, block: list[t.Stmt]) -> t.Expr:
        inner = lowerer.nested(unravel(shader, block, reduce.indices, at))
        return term_of(replace(inner, block=block), reduce, wide=width > 1)

    blocks = Blocks(
        counter,
        start=along.begin + (part * slices.count * at_once + slices.own),
        end=along.end,
        step=slices.count,
        turn=count * slices.count * at_once,
        at_once=at_once,
    )
    reduced = reduce.kind, reduce.type, width
    start, loop = accumulate_blocks(shader, total, reduced, blocks, term)
    lowerer.block.extend([start, t.If(inside, (loop,))])
    return total


# The second dispatch


def finish_shader(task: Task, split: Split) -> DispatchShader:
    """Return the second shader: it joins a column's parts and does the stage's steps.

    In WGSL, but for the parts read at once, and the join of the slices:

        for (var part = slice; part < count; part += slices) {
            total += parts[first + part * u.n];
        }
    """
    reduce = reduction_of(task)
    shader, body = ShaderBuilder(task, {}), list[t.Stmt]()
    *outer, column = task.domain
    count = _write_count(shader, body, split)
    across = _finish_across(split)
    slices = Slices.lay(shader, body, across, {split.count: count})
    element = linear_group(shader) * slices.across + slices.place
    element = shader.let(body, "element", element)
    at = unravel(shader, body, task.domain, element)
    first, total, part = (
        t.Ident(shader.fresh(name)) for name in ("first", "total", "part")
    )
    # The parts of a column lie a row of columns apart: parts[row][part][column].
    columns = shader.extent(column.extent)
    row = element // columns if outer else t.ZERO
    parts = shader.scratch("parts", partial_type(reduce), written=False)
    body.append(t.Let(first.name, row * count * columns + at[column]))
    blocks = Blocks(
        part.name,
        start=slices.own,
        end=count,
        step=slices.count,
        turn=t.lift(slices.count) * PARTS_AT_ONCE,
        at_once=PARTS_AT_ONCE,
    )

    def read(at: t.Ident, _: list[t.Stmt]) -> t.Expr:
        return parts.load(first + at * columns)

    reduced = reduce.kind, partial_type(reduce), 1
    start, loop = accumulate_blocks(shader, total, reduced, blocks, read)
    exists = element < shader.size(task.domain)
    inside = slices.within(exists)
    partial, joined = slices.join(reduce, total, 1)
    body += [start, t.If(inside, (loop,)), *joined]
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    only = t.all_of(slices.own.equals(0), exists)
    finish_steps(lowerer, task, reduce, Value(partial[shader.lane]), only)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(task.domain), across),
        workgroup_size=LANES_PER_GROUP,
        summary="second of two dispatches: the parts together.",
        variant="finish",
        trips=loop_trips(task, {reduce: split.count}),
    )


def _finish_across(split: Split) -> Size:
    """Return how many columns a workgroup of the second dispatch has: 256 down to 8.

    A slice is to have `PARTS_AT_ONCE` parts of each, so that it waits for memory once.
    """
    slices = minimum(ceil_div(split.count, PARTS_AT_ONCE), FINISH_SLICES)
    return quotient(LANES_PER_GROUP, slices)
