"""A workgroup per block of columns: lanes lie along the last index of the domain.

The lanes of one column share its reduction in slices, which are joined at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.nodes import Index, Reduce
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.cooperation import (
    finish_steps,
    join,
    reduction_label,
    reduction_of,
    shared_array,
)
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.steps import last_extents, vector_tensors
from kerngen.schedule.task import Task, host_extent, host_multiple, host_product
from kerngen.schedule.trips import loop_turns, nested_turns
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

LANES_PER_GROUP: Final = 256
COLUMNS: Final = 64


def lower_columnwise(task: Task) -> Iterator[Variant]:
    """Yield a variant that reads vectors, where sizes allow, and one for any size."""
    column = task.domain[-1]
    exprs = (reduction_of(task).body, *task.values)
    names = vector_tensors(task.stage, exprs, column)
    extents = [column.extent, *last_extents(task.stage, exprs, names)]
    when = host_multiple(extents, LANES)
    if when is not None:
        yield Variant("aligned", when, (_shader(task, names),))
    yield Variant("edge", "", (_shader(task, set()),))


def _shader(task: Task, names: set[str]) -> Shader:
    width = LANES if names else 1
    across = COLUMNS // width
    slices = LANES_PER_GROUP // across
    reduce = reduction_of(task)
    *outer, column = task.domain
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    body: list[t.Stmt] = []
    at = _place(shader, body, tuple(outer), column, across, width)
    slice_ = t.Ident(shader.fresh("slice"))
    body.append(t.Let(slice_.name, shader.lane // across))
    vector = column if names else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    shared = shared_array(shader, reduce, LANES_PER_GROUP, width)
    inside = at[column] < shader.extent(column.extent)
    total = _accumulate_slice(lowerer, task, slice_, slices, inside)
    body.append(t.Assign(shared[shader.lane], total))
    body += join(
        shader, reduce.kind, shared, count=slices, position=slice_, stride=across
    )
    first = t.all_of(slice_.equals(0), inside)
    value = Value(shared[shader.lane], wide=bool(names))
    finish_steps(lowerer, task, reduce, value, first)
    rows = host_product(tuple(outer))
    blocks = f"ceil_div({host_extent(column.extent)}, {COLUMNS})"
    return shader.finish(
        body,
        groups=blocks if not outer else f"{rows} * {blocks}",
        workgroup_size=LANES_PER_GROUP,
        summary=f"{COLUMNS} columns per workgroup in {slices} slices.",
        variant="" if names else "edge",
        turns=loop_turns(task, {reduce: _turns(reduce, slices)}),
    )


def _turns(reduce: Reduce, slices: int) -> str:
    """Return how often the loops of a slice turn."""
    first, *rest = reduce.indices
    own = f"ceil_div({host_extent(first.extent)}, {slices})"
    return nested_turns(own, tuple(rest))


def _place(
    shader: ShaderBuilder,
    body: list[t.Stmt],
    outer: tuple[Index, ...],
    column: Index,
    across: int,
    width: int,
) -> dict[Index, t.Expr]:
    """Name the workgroup's row and the lane's first column."""
    group, blocks = (t.Ident(shader.fresh(name)) for name in ("group", "blocks"))
    needed = (shader.extent(column.extent) + (COLUMNS - 1)) // COLUMNS
    body += [
        t.Let(group.name, linear_group(shader)),
        t.Let(blocks.name, needed),
        t.If(group >= shader.size(outer) * blocks, (t.Return(),)),
    ]
    row = group // blocks if outer else t.ZERO
    at = unravel(shader, body, outer, row)
    block = group % blocks if outer else group
    first = block * COLUMNS + shader.lane % across * width
    name = shader.name(column.name)
    body.append(t.Let(name, first))
    return {**at, column: t.Ident(name)}


def _accumulate_slice(
    lowerer: Lowerer, task: Task, slice_: t.Expr, slices: int, inside: t.Expr
) -> t.Ident:
    """Let each slice take every `slices`-th term of its columns."""
    reduce, shader = reduction_of(task), lowerer.shader
    width = LANES if lowerer.vector else 1
    total = t.Ident(shader.fresh(f"{lowerer.label}_{reduce.kind}"))
    first, *rest = reduce.indices
    counter = t.Ident(shader.name(first.name))
    inner = lowerer.nested({first: counter, **lowerer.counters(tuple(rest))})
    term = inner.lower(reduce.body)
    value = inner.widen(term, reduce.type) if width > 1 else term.expr
    inner.block.append(accumulate(reduce.kind, total, value))
    body = lowerer.serial_loops(tuple(rest), inner.block)
    end = shader.extent(first.extent)
    loop = t.count_up(counter.name, slice_, end, slices, *body)
    start = identity(reduce.kind, reduce.type, width)
    lowerer.block.extend([t.Var(total.name, start), t.If(inside, (loop,))])
    return total
