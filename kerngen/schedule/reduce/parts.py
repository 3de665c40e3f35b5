"""Strategy `reduce` along rows: `y[i] = sum[j] x[i, j]`, where workgroups share a row.

    first dispatch    each workgroup reduces a part of a row to one number:   parts[i][part]
    second            a workgroup joins the parts of each row, and does the stage's steps

The lanes of a workgroup read neighbouring terms of the row, where memory is contiguous.
A single row of up to 4,096 terms, `y = sum[j] x[j]`, is one dispatch of one workgroup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.nodes import Reduce
from kerngen.plan.size import NEVER, ONE, Guard, Literal, Size
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.argmax import partial_type, term_of
from kerngen.schedule.lowering.blocks import Blocks, accumulate_blocks
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    counted_terms,
    finish_steps,
    own_total,
    reduction_label,
    reduction_of,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.joining import Joiner
from kerngen.schedule.lowering.positions import linear_group, position_name, unravel
from kerngen.schedule.lowering.ranges import terms_in_order
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.reduce.rowwise import by_width, row_trips
from kerngen.schedule.sizes import at_most, domain_size, to_wgsl
from kerngen.schedule.split import Split
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

PART_LANES: Final = 256
"""The lanes of a workgroup."""

PART: Final = 4096
"""How many terms of a row make a part, while there are at most `MAX_PARTS`."""

MAX_PARTS: Final = 1024
"""The most parts of a row: four for each lane of the workgroup that joins them."""

AT_ONCE: Final = 4
"""How many terms, or vectors of four, a lane reads before it adds any."""


def lower_parts(task: Task, *, subgroups: bool) -> Iterator[Variant]:
    """Yield the variants: for a single short row one dispatch, else rows in parts by two."""
    short = at_most(reduction_of(task).indices, PART)
    if not task.domain and short != NEVER:
        yield Variant("short", short, (_short_shader(task, subgroups=subgroups),))

    last = _finish_shader(task, subgroups=subgroups)

    def variant(name: str, when: Guard, names: set[str]) -> Variant:
        shaders = (_parts_shader(task, names, subgroups=subgroups), last)
        words = value_bytes(partial_type(reduction_of(task))) // 4
        scratch = Scratch(task.scratch_name("parts"), _part_count(task) * words)
        return Variant(name, when, shaders, (scratch,))

    yield from by_width(task, variant)


def _short_shader(task: Task, *, subgroups: bool) -> DispatchShader:
    """Return the shader of a single short row: one workgroup does everything."""
    reduce = reduction_of(task)
    shader, body = ShaderBuilder(task, {}), list[t.Stmt]()
    lowerer = Lowerer(shader, {}, body, label=reduction_label(task))
    total = _accumulate(lowerer, reduce, t.ZERO, t.ONE, 1)
    _finish(lowerer, task, total, subgroups=subgroups)
    return shader.finish(
        body,
        groups=ONE,
        workgroup_size=PART_LANES,
        summary=f"one workgroup, for up to {PART} terms.",
        variant="short",
        trips=row_trips(task, reduce, Literal(PART_LANES)),
    )


def _finish(lowerer: Lowerer, task: Task, total: t.Ident, *, subgroups: bool) -> None:
    """Write the join of all lanes' totals, and the stage's steps for lane 0."""
    reduce, shader = reduction_of(task), lowerer.shader
    joiner = Joiner(shader, PART_LANES, PART_LANES, subgroups=subgroups)
    whole = t.Ident(shader.fresh("whole"))
    joined = joiner.joined(reduce.kind, partial_type(reduce), total)
    lowerer.block.append(t.Let(whole.name, joined))
    finish_steps(lowerer, task, reduce, Value(whole), shader.lane.equals(0))


def _parts_shader(task: Task, names: set[str], *, subgroups: bool) -> DispatchShader:
    """Return the first shader: each workgroup reduces a part of a row.

    In WGSL, for rows of vectors:

        let count = ...;                                 // parts of a row
        let group = workgroup.y * grid.x + workgroup.x;
        let i = group / count;
        ...                                              // `_accumulate`
        let whole = row_sum(y_sum.x + y_sum.y + (y_sum.z + y_sum.w), lane);
        if (lane == 0u) { parts[group] = whole; }
    """
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    width = LANES if names else 1
    count, group = (t.Ident(shader.fresh(name)) for name in ("count", "group"))
    body: list[t.Stmt] = [
        t.Let(count.name, to_wgsl(_split(task).count, shader)),
        t.Let(group.name, linear_group(shader)),
        t.If(group >= shader.size(task.domain) * count, (t.Return(),)),
    ]
    row, part = (group // count, group % count) if task.domain else (t.ZERO, group)
    at = unravel(shader, body, task.domain, row)
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    # Each lane's terms, the components of its total, then all lanes of the workgroup.
    total = _accumulate(lowerer, reduce, part, count, width)
    joiner = Joiner(shader, PART_LANES, PART_LANES, subgroups=subgroups)
    own = own_total(reduce, total, width)
    whole = t.Ident(shader.fresh("whole"))
    body.append(
        t.Let(whole.name, joiner.joined(reduce.kind, partial_type(reduce), own))
    )
    parts = shader.scratch("parts", partial_type(reduce), written=True)
    body.append(t.If(shader.lane.equals(0), (parts.store(group, whole),)))
    return shader.finish(
        body,
        groups=_part_count(task),
        workgroup_size=PART_LANES,
        summary="first of two dispatches: a part per workgroup.",
        variant="" if names else "edge",
        terms=counted_terms(reduce),
        trips=row_trips(task, reduce, _split(task).count * (PART_LANES * width)),
    )


def _accumulate(
    lowerer: Lowerer, reduce: Reduce, part: t.Expr, count: t.Expr, width: int
) -> t.Ident:
    """Write a lane's loop over the terms of its part; return the variable of its total.

    A row's `count` parts take turns of 1,024 terms, or vectors, each:

        part 0: terms 0 to 1023, then those from 1024 * count on
        part 1: terms 1024 to 2047, ...
    """
    shader, indices = lowerer.shader, reduce.indices
    counter, along = terms_in_order(lowerer, reduce, width)
    total = t.Ident(shader.fresh(f"{lowerer.label}_{reduce.kind}"))

    def term(at: t.Ident, block: list[t.Stmt]) -> t.Expr:
        inner = replace(
            lowerer.nested(unravel(shader, block, indices, at)), block=block
        )
        if width > 1:
            inner = replace(inner, vector=indices[-1])
        return term_of(inner, reduce, wide=width > 1)

    step = PART_LANES * width
    first = part * AT_ONCE * PART_LANES + shader.lane
    blocks = Blocks(
        counter,
        start=along.begin + first * width,
        end=along.end,
        step=step,
        turn=count * (AT_ONCE * step),
        at_once=AT_ONCE,
    )
    reduced = reduce.kind, reduce.type, width
    lowerer.block.extend(accumulate_blocks(shader, total, reduced, blocks, term))
    return total


def _finish_shader(task: Task, *, subgroups: bool) -> DispatchShader:
    """Return the second shader: a workgroup joins the parts of each row."""
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, {})
    body: list[t.Stmt] = []
    row = _row(shader, body) if task.domain else t.ZERO
    at = unravel(shader, body, task.domain, row)
    count, total, part = (
        t.Ident(shader.fresh(name)) for name in ("count", "total", "part")
    )
    parts = shader.scratch("parts", partial_type(reduce), written=False)
    body.append(t.Let(count.name, to_wgsl(_split(task).count, shader)))
    # A lane reads all its parts at once: four, as there are at most 1,024.
    at_once = MAX_PARTS // PART_LANES
    blocks = Blocks(
        part.name,
        start=shader.lane,
        end=count,
        step=PART_LANES,
        turn=t.u32(at_once * PART_LANES),
        at_once=at_once,
    )

    def term(at: t.Ident, _: list[t.Stmt]) -> t.Expr:
        return parts.load(row * count + at)

    reduced = reduce.kind, reduce.type, 1
    body += accumulate_blocks(shader, total, reduced, blocks, term)
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    _finish(lowerer, task, total, subgroups=subgroups)
    return shader.finish(
        body,
        groups=domain_size(task.domain),
        workgroup_size=PART_LANES,
        summary="second of two dispatches: the parts together.",
        variant="finish",
    )


def _row(shader: ShaderBuilder, body: list[t.Stmt]) -> t.Ident:
    """Write the number of the workgroup's row, and return from those past the last row."""
    domain = shader.task.domain
    row = t.Ident(position_name(shader, domain, "row"))
    body += [
        t.Let(row.name, linear_group(shader)),
        t.If(row >= shader.size(domain), (t.Return(),)),
    ]
    return row


def _split(task: Task) -> Split:
    return Split(reduction_of(task).indices, PART, MAX_PARTS)


def _part_count(task: Task) -> Size:
    """Return the number of parts of all rows."""
    return domain_size(task.domain) * _split(task).count
