"""Strategy `reduce` along columns: `y[j] = sum[i] x[i, j]`.

Neighbouring lanes have neighbouring columns j, so that they read contiguous memory.  The
terms of a column are cut into parts, a workgroup for each, and a workgroup's lanes into
slices, which take the terms in turn.  By single columns, with one part:

    lane        0 .. 63     64 .. 127    128 .. 191    192 .. 255
    columns     0 .. 63     0 .. 63      0 .. 63       0 .. 63
    slice       0           1            2             3
    terms i     0, 4, ...   1, 5, ...    2, 6, ...     3, 7, ...

At the end the slices are joined, in workgroup memory.  A second dispatch joins the parts,
with an invocation for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kerngen.ir.nodes import Index, Reduce
from kerngen.plan.size import ALWAYS, NEVER, Guard, Size, ceil_div
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.argmax import partial_type, whole_of
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    Take,
    into,
    join,
    reduction_label,
    reduction_of,
    shared_array,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity, in_pairs
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.lowering.steps import last_extents, tensors_in_runs, write_steps
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.per_element import linear_group, start_invocation, unravel
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.sizes import (
    all_divisible,
    domain_size,
    extent_size,
    loop_trips,
    nested_trips,
    to_wgsl,
)
from kerngen.schedule.split import Split
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

LANES_PER_GROUP: Final = 256
"""The lanes of a workgroup of the first dispatch."""

COLUMNS: Final = 64
"""How many columns a workgroup has: 64 lanes of one, or 16 lanes of a vector of four."""

PART: Final = 256
"""How many terms of a column make a part, while there are at most `MAX_PARTS`."""

MAX_PARTS: Final = 256
"""The most parts of a column: longer columns have longer parts."""

FINISH_SIZE: Final = 64
"""The lanes of a workgroup of the second dispatch."""

AT_ONCE: Final = 4
"""How many parts an invocation reads before it joins any, so that it waits once."""


def lower_columnwise(task: Task) -> Iterator[Variant]:
    """Yield the variants: one that reads vectors of four columns, and one for any size."""

    def first(names: set[str]) -> DispatchShader:
        return _parts_shader(task, names)

    return by_column_width(task, first)


def by_column_width(
    task: Task, first: Callable[[set[str]], DispatchShader]
) -> Iterator[Variant]:
    """Yield a variant that reads vectors, where sizes allow, and one for any size.

    `first` returns the first dispatch, given the names of the tensors to read as vectors.
    """
    column, body = task.domain[-1], (reduction_of(task).body,)
    # Places are found one by one: no vector holds those of four columns.
    finds_place = reduction_of(task).finds_place
    names = set[str]() if finds_place else tensors_in_runs(body, column)
    extents = [column.extent, *last_extents(task.stage, body, names)]
    when = all_divisible(extents, LANES) if names else NEVER
    if when != NEVER:
        yield _variant(task, "aligned", when, first(names))
    yield _variant(task, "edge", ALWAYS, first(set()))


def _variant(task: Task, name: str, when: Guard, first: DispatchShader) -> Variant:
    """Return a variant of two dispatches, with the buffer of the parts between them."""
    words = value_bytes(partial_type(reduction_of(task))) // 4
    length = domain_size(task.domain) * split_of(task).count * words
    scratch = Scratch(task.scratch_name("parts"), length)
    split = split_of(task)
    finish = task.once((finish_shader, split), lambda: finish_shader(task, split))
    return Variant(name, when, (first, finish), (scratch,))


def split_of(task: Task) -> Split:
    """Return how the terms of each column are cut into parts for workgroups."""
    return Split(reduction_of(task).indices[:1], PART, MAX_PARTS)


# The first dispatch


def _parts_shader(task: Task, names: set[str]) -> DispatchShader:
    """Return the first shader: a workgroup has a part of 64 columns.

    In WGSL, for `y[j] = sum[i] x[i, j]` by single columns:

        let count = ...; let blocks = ...;              // parts; blocks of 64 columns
        let group = workgroup.y * grid.x + workgroup.x;
        let slice = lane / 64u;
        let j = group % blocks * 64u + lane % 64u;
        var y_sum = 0.0;
        for (var i = (group / blocks) * 4u + slice; i < u.m; i += count * 4u) {
            y_sum += x[i * u.n + j];
        }
    """
    # A workgroup's lanes: `across` lanes for 64 columns, in as many slices as are left.
    width = LANES if names else 1
    across = COLUMNS // width
    slices = LANES_PER_GROUP // across
    reduce, split = reduction_of(task), split_of(task)
    *outer, column = task.domain
    wide = names | {task.scratch_name("parts")} if names else names
    shader = ShaderBuilder(task, dict.fromkeys(wide, LANES))
    count, group, blocks, slice_ = (
        t.Ident(shader.fresh(name)) for name in ("count", "group", "blocks", "slice")
    )
    columns = ceil_div(extent_size(column.extent), COLUMNS)
    body: list[t.Stmt] = [
        t.Let(count.name, to_wgsl(split.count, shader)),
        t.Let(blocks.name, to_wgsl(columns, shader)),
        t.Let(group.name, linear_group(shader)),
        t.If(
            group >= shader.size(tuple(outer)) * count * blocks,
            (t.Return(),),
        ),
        t.Let(slice_.name, shader.lane // across),
    ]
    # The workgroup's number is outer row, part, block of columns, from high to low.
    line = group // blocks
    row, part = (line // count, line % count) if outer else (t.ZERO, line)
    at = unravel(shader, body, tuple(outer), row)
    first = group % blocks * COLUMNS + shader.lane % across * width
    at[column] = t.Ident(shader.name(column.name))
    body.append(t.Let(shader.name(column.name), first))
    vector = column if names else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    step = part * slices + slice_, count * slices
    _join_slices(lowerer, reduce, column, (slice_, slices), step, line)
    return shader.finish(
        body,
        groups=domain_size(outer) * split.count * columns,
        workgroup_size=LANES_PER_GROUP,
        summary=(
            f"first of two dispatches: a part of {COLUMNS} columns per workgroup, "
            f"in {slices} slices."
        ),
        variant="" if names else "edge",
        trips=loop_trips(task, {reduce: slice_trips(task, slices)}),
    )


def _join_slices(
    lowerer: Lowerer,
    reduce: Reduce,
    column: Index,
    slice_: tuple[t.Expr, int],
    step: tuple[t.Expr, t.Expr],
    line: t.Expr,
) -> None:
    """Write the loop of a slice, and the join of the slices, whose total the first one stores.

    `slice_` is the lane's slice, and the number of slices; `step` its first term, and the
    distance to the next; `line` the number of the row of `parts` that has the total.
    """
    shader, width = lowerer.shader, LANES if lowerer.vector else 1
    # Lanes past the last column have no terms, but take part in the barriers.
    (own, slices), extent = slice_, shader.extent(column.extent)
    at, lane = lowerer.at[column], shader.lane
    shared = shared_array(shader, reduce, LANES_PER_GROUP, width)
    inside, across = at < extent, LANES_PER_GROUP // slices
    total = _accumulate(lowerer, reduce, *step, inside)
    block = lowerer.block
    block += [
        t.Assign(shared[lane], total),
        *join(shader, reduce.kind, shared, count=slices, position=own, stride=across),
    ]
    parts = shader.scratch("parts", partial_type(reduce), written=True)
    store = parts.store((line * extent + at) // width, shared[lane])
    block.append(t.If(t.all_of(own.equals(0), inside), (store,)))


def slice_trips(task: Task, slices: int) -> Size:
    """Return how many turns the loops of one slice take."""
    first, *rest = reduction_of(task).indices
    own = ceil_div(extent_size(first.extent), split_of(task).count * slices)
    return nested_trips(own, tuple(rest))


def _accumulate(
    lowerer: Lowerer,
    reduce: Reduce,
    start: t.Expr,
    stride: t.Expr,
    inside: t.Expr,
) -> t.Ident:
    """Write a lane's loop over every `stride`-th term from `start` on; return its total."""
    width = LANES if lowerer.vector else 1
    total = t.Ident(lowerer.shader.fresh(f"{lowerer.label}_{reduce.kind}"))
    loop = slice_loop(lowerer, reduce, into(total, reduce, width), start, stride)
    zero = identity(lowerer.shader, reduce.kind, reduce.type, width)
    lowerer.block.extend([t.Var(total.name, zero), t.If(inside, (loop,))])
    return total


def slice_loop(
    lowerer: Lowerer,
    reduce: Reduce,
    take: Take,
    start: t.Expr,
    stride: t.Expr,
) -> t.Stmt:
    """Return the loop over the terms of a slice: every `stride`-th one from `start` on.

    `take` appends the statements that add a term, at a lowerer inside of the loop.
    """
    shader = lowerer.shader
    first, *rest = reduce.indices
    counter = t.Ident(shader.name(first.name))
    inner = lowerer.nested({first: counter, **lowerer.counters(tuple(rest))})
    take(inner)
    body = lowerer.serial_loops(tuple(rest), inner.block)
    along = terms_along(lowerer, reduce, first)
    return t.count_up(counter.name, along.begin + start, along.end, stride, *body)


# The second dispatch


def finish_shader(task: Task, split: Split) -> DispatchShader:
    """Return the second shader: it joins a column's parts and does the stage's steps.

    In WGSL:

        for (var part = 0u; part < count / 4u * 4u; part += 4u) {
            total += parts[...] + parts[...] + (parts[...] + parts[...]);
        }
        for (var part = count / 4u * 4u; part < count; part++) { total += parts[...]; }
    """
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, {})
    body, element = start_invocation(shader, FINISH_SIZE, shader.size(task.domain))
    at = unravel(shader, body, task.domain, element)
    *outer, column = task.domain
    count, first, total, part = (
        t.Ident(shader.fresh(name)) for name in ("count", "first", "total", "part")
    )
    # The parts of a column lie a row of columns apart: parts[row][part][column].
    columns = shader.extent(column.extent)
    row = element // columns if outer else t.ZERO
    parts = shader.scratch("parts", partial_type(reduce), written=False)
    in_fours = count // AT_ONCE * AT_ONCE

    def take(several: int) -> t.Stmt:
        values = [
            parts.load(first + (part + number) * columns) for number in range(several)
        ]
        return accumulate(reduce.kind, total, in_pairs(reduce.kind, values))

    body += [
        t.Let(count.name, to_wgsl(split.count, shader)),
        t.Let(first.name, row * count * columns + at[column]),
        t.Var(total.name, identity(shader, reduce.kind, reduce.type)),
        t.count_up(part.name, 0, in_fours, AT_ONCE, take(AT_ONCE)),
        t.count_up(part.name, in_fours, count, 1, take(1)),
    ]
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    lowerer.reduced[reduce] = whole_of(reduce, Value(total))
    write_steps(lowerer, task.stage)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(task.domain), FINISH_SIZE),
        workgroup_size=FINISH_SIZE,
        summary="second of two dispatches: the parts together.",
        variant="finish",
        trips=loop_trips(task, {reduce: split.count}),
    )
