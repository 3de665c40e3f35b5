"""Strategy `reduce` along rows: workgroups share a row, then one joins its parts.

The lanes of a workgroup stride along the last reduction index, where memory is
contiguous, several terms at a time.  What the first dispatch leaves is as long as the
rows are many, times the parts of each.  A single row of one part needs no second one.
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
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.per_element import linear_group, position_name, unravel
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.reduce.rowwise import by_width, row_trips
from kerngen.schedule.sizes import at_most, domain_size, to_wgsl
from kerngen.schedule.split import Split
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

PART_LANES: Final = 256
PART: Final = 4096
MAX_PARTS: Final = 1024
"""A row has a part for every `PART` terms, and at most `MAX_PARTS` parts."""

AT_ONCE: Final = 4
"""How many terms, or vectors of them, a lane takes in a turn."""


def lower_parts(task: Task, *, subgroups: bool) -> Iterator[Variant]:
    """Yield the variants: rows in parts by two dispatches, or one short row in one."""
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
    """Join what the lanes of a workgroup have, and do the stage's steps with it."""
    reduce, shader = reduction_of(task), lowerer.shader
    joiner = Joiner(shader, PART_LANES, PART_LANES, subgroups=subgroups)
    whole = t.Ident(shader.fresh("whole"))
    joined = joiner.joined(reduce.kind, partial_type(reduce), total)
    lowerer.block.append(t.Let(whole.name, joined))
    finish_steps(lowerer, task, reduce, Value(whole), shader.lane.equals(0))


def _parts_shader(task: Task, names: set[str], *, subgroups: bool) -> DispatchShader:
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
    """Let each lane take its terms of a part; return its total."""
    shader, indices = lowerer.shader, reduce.indices
    single = len(indices) == 1
    counter = shader.name(indices[0].name) if single else shader.fresh("term")
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
    start, end = first * width, shader.size(indices)
    if single:
        along = terms_along(lowerer, reduce, indices[0], width)
        start, end = along.begin + start, along.end
    blocks = Blocks(
        counter,
        start=start,
        end=end,
        step=step,
        turn=count * (AT_ONCE * step),
        at_once=AT_ONCE,
    )
    reduced = reduce.kind, reduce.type, width
    lowerer.block.extend(accumulate_blocks(shader, total, reduced, blocks, term))
    return total


def _finish_shader(task: Task, *, subgroups: bool) -> DispatchShader:
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
    """Number the row that a workgroup joins, and leave those past the last one."""
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
    """Return how many parts all rows have together."""
    return domain_size(task.domain) * _split(task).count
