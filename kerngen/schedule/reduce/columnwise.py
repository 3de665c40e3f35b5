"""Strategy `reduce` along columns: lanes lie along the domain's last index.

The lanes of one column share its part of the reduction in slices, which are joined at the
end; a second dispatch joins the parts, an invocation per column.
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
COLUMNS: Final = 64
PART: Final = 256
MAX_PARTS: Final = 256
"""A column has a part for every `PART` terms, and at most `MAX_PARTS` parts."""
FINISH_SIZE: Final = 64
AT_ONCE: Final = 4
"""How many parts an invocation joins in a turn: it waits for all of them together."""


def lower_columnwise(task: Task) -> Iterator[Variant]:
    """Return the variants that compute one row of the result at a time."""

    def first(names: set[str]) -> DispatchShader:
        return _parts_shader(task, names)

    return by_column_width(task, first)


def by_column_width(
    task: Task, first: Callable[[set[str]], DispatchShader]
) -> Iterator[Variant]:
    """Yield a variant that reads vectors, where sizes allow, and one for any size.

    `first` makes the first dispatch, given the tensors that are read as vectors.
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
    words = value_bytes(partial_type(reduction_of(task))) // 4
    length = domain_size(task.domain) * split_of(task).count * words
    scratch = Scratch(task.scratch_name("parts"), length)
    split = split_of(task)
    finish = task.once((finish_shader, split), lambda: finish_shader(task, split))
    return Variant(name, when, (first, finish), (scratch,))


def split_of(task: Task) -> Split:
    """Return how a column's terms are cut into parts."""
    return Split(reduction_of(task).indices[:1], PART, MAX_PARTS)


# The first dispatch


def _parts_shader(task: Task, names: set[str]) -> DispatchShader:
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
    """Write the join of a part's slices, of which the first keeps the total.

    `slice_` is an invocation's slice, and how many there are; `step` its first term and
    their distance; `line` the row of parts that the total is kept in.
    """
    shader, width = lowerer.shader, LANES if lowerer.vector else 1
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
    """Return how many trips the loops of a slice take."""
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
    """Let each lane take every `stride`-th term of its columns, from `start` on."""
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
    """Return a slice's loop: `take` adds every `stride`-th term of its columns."""
    shader = lowerer.shader
    first, *rest = reduce.indices
    counter = t.Ident(shader.name(first.name))
    inner = lowerer.nested({first: counter, **lowerer.counters(tuple(rest))})
    take(inner)
    body = lowerer.serial_loops(tuple(rest), inner.block)
    along = terms_along(lowerer, reduce, first)
    return t.count_up(counter.name, along.begin + start, along.end, stride, *body)


# The second one


def finish_shader(task: Task, split: Split) -> DispatchShader:
    """Return the shader that joins the parts and does the stage's steps."""
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, {})
    body, element = start_invocation(shader, FINISH_SIZE, shader.size(task.domain))
    at = unravel(shader, body, task.domain, element)
    *outer, column = task.domain
    count, first, total, part = (
        t.Ident(shader.fresh(name)) for name in ("count", "first", "total", "part")
    )
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
