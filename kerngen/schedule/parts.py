"""Strategy `reduce`, along rows: many workgroups leave a part of each row, then one joins them.

The lanes of a workgroup stride along the last reduction index, where memory is
contiguous.  What the first dispatch leaves is as long as the rows are many, times the
parts of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.cooperation import (
    accumulate_strided,
    counted_terms,
    finish_steps,
    join,
    own_total,
    reduction_label,
    reduction_of,
    shared_array,
    value_bytes,
)
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, position_name, unravel
from kerngen.schedule.program import Scratch, Shader, Variant
from kerngen.schedule.rowwise import by_width, row_turns
from kerngen.schedule.split import Split
from kerngen.schedule.task import Task, host_product
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

PART_LANES: Final = 256
PART: Final = 4096
MAX_PARTS: Final = 1024
"""A row has a part for every so many terms, but not more than so many parts."""


def lower_parts(task: Task) -> Iterator[Variant]:
    """Return the variants that do a row in two dispatches."""

    def variant(name: str, when: str, names: set[str]) -> Variant:
        shaders = (_parts_shader(task, names), _finish_shader(task))
        scratch = Scratch(task.scratch_name("parts"), _host_words(task))
        return Variant(name, when, shaders, (scratch,))

    return by_width(task, variant)


def _parts_shader(task: Task, names: set[str]) -> Shader:
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    width = LANES if names else 1
    count, group = (t.Ident(shader.fresh(name)) for name in ("count", "group"))
    body: list[t.Stmt] = [
        t.Let(count.name, _split(task).count(shader)),
        t.Let(group.name, linear_group(shader)),
        t.If(group >= shader.size(task.domain) * count, (t.Return(),)),
    ]
    row, part = (group // count, group % count) if task.domain else (t.ZERO, group)
    at = unravel(shader, body, task.domain, row)
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    shared = shared_array(shader, reduce, PART_LANES)
    total = accumulate_strided(
        lowerer,
        reduce,
        start=part * PART_LANES + shader.lane,
        stride=count * PART_LANES,
        width=width,
    )
    body.append(t.Assign(shared[shader.lane], own_total(reduce, total, width)))
    body += join(shader, reduce.kind, shared, count=PART_LANES)
    parts = shader.scratch("parts", reduce.type, written=True)
    store = parts.store(group, shared[t.ZERO])
    body.append(t.If(shader.lane.equals(0), (store,)))
    return shader.finish(
        body,
        groups=_host_groups(task),
        workgroup_size=PART_LANES,
        summary="first of two dispatches: a part per workgroup.",
        variant="" if names else "edge",
        terms=counted_terms(reduce),
        turns=row_turns(
            task, reduce, f"({_split(task).host_count} * {PART_LANES * width})"
        ),
    )


def _finish_shader(task: Task) -> Shader:
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, {})
    body: list[t.Stmt] = []
    row = _row(shader, body) if task.domain else t.ZERO
    at = unravel(shader, body, task.domain, row)
    count, total, part = (
        t.Ident(shader.fresh(name)) for name in ("count", "total", "part")
    )
    parts = shader.scratch("parts", reduce.type, written=False)
    take = accumulate(reduce.kind, total, parts.load(row * count + part))
    shared = shared_array(shader, reduce, PART_LANES)
    body += [
        t.Let(count.name, _split(task).count(shader)),
        t.Var(total.name, identity(reduce.kind, reduce.type)),
        t.count_up(part.name, shader.lane, count, PART_LANES, take),
        t.Assign(shared[shader.lane], total),
        *join(shader, reduce.kind, shared, count=PART_LANES),
    ]
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    first = shader.lane.equals(0)
    finish_steps(lowerer, task, reduce, Value(shared[t.ZERO]), first)
    return shader.finish(
        body,
        groups=host_product(task.domain),
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


def _host_words(task: Task) -> str:
    """Return the Python text of how long the parts are, in words of 4 bytes."""
    words = value_bytes(reduction_of(task).type) // 4
    return _host_groups(task) if words == 1 else f"{_host_groups(task)} * {words}"


def _host_groups(task: Task) -> str:
    """Return the Python text of how many parts there are in all."""
    count = _split(task).host_count
    return f"{host_product(task.domain)} * {count}" if task.domain else count
