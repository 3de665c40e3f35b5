"""One workgroup per element of the domain, or all of them for a single total.

Lanes stride along the last reduction index, where memory is contiguous.  A domain
without indices is reduced in two dispatches: many workgroups leave a partial result
each, and one workgroup adds those up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.nodes import Reduce
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
)
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, position_name, unravel
from kerngen.schedule.program import Scratch, Shader, Variant
from kerngen.schedule.steps import last_extents, vector_tensors
from kerngen.schedule.task import Task, host_multiple, host_product
from kerngen.schedule.trips import loop_turns
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

ROW_LANES: Final = 128
TOTAL_LANES: Final = 256
PART: Final = 4096
MAX_PARTS: Final = 1024


def lower_rowwise(task: Task) -> Iterator[Variant]:
    """Yield a variant that reads vectors, where sizes allow, and one for any size."""
    names = _vector_names(task)
    extents = last_extents(task.stage, (reduction_of(task).body,), names)
    when = host_multiple(extents, LANES) if names else None
    if when is not None:
        yield _variant(task, "aligned", when, names)
    yield _variant(task, "edge", "", set())


def _vector_names(task: Task) -> set[str]:
    """Return the tensors read in runs along the last reduction index.

    None is, unless that index ranges over a whole last axis of each: the loop must end
    where the rows do.
    """
    reduce = reduction_of(task)
    last = reduce.indices[-1]
    names = vector_tensors(task.stage, (reduce.body,), last)
    extents = last_extents(task.stage, (reduce.body,), names)
    return names if all(extent == last.extent for extent in extents) else set()


def _variant(task: Task, name: str, when: str, names: set[str]) -> Variant:
    if task.domain:
        return Variant(name, when, (_row_shader(task, names),))
    parts = Scratch(task.scratch_name("parts"), _host_parts(task))
    shaders = (_parts_shader(task, names), _finish_shader(task))
    return Variant(name, when, shaders, (parts,))


def _row_shader(task: Task, names: set[str]) -> Shader:
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    width = LANES if names else 1
    row = t.Ident(position_name(shader, task.domain, "row"))
    body: list[t.Stmt] = [
        t.Let(row.name, linear_group(shader)),
        t.If(row >= shader.size(task.domain), (t.Return(),)),
    ]
    at = unravel(shader, body, task.domain, row)
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    shared = shared_array(shader, reduce, ROW_LANES)
    total = accumulate_strided(
        lowerer, reduce, start=shader.lane, stride=t.u32(ROW_LANES), width=width
    )
    body.append(t.Assign(shared[shader.lane], own_total(reduce, total, width)))
    body += join(shader, reduce.kind, shared, count=ROW_LANES)
    first = shader.lane.equals(0)
    finish_steps(lowerer, task, reduce, Value(shared[t.ZERO]), first)
    return shader.finish(
        body,
        groups=host_product(task.domain),
        workgroup_size=ROW_LANES,
        summary="one workgroup per row.",
        variant="" if names else "edge",
        terms=counted_terms(reduce),
        turns=_turns(task, reduce, str(ROW_LANES * width)),
    )


def _parts_shader(task: Task, names: set[str]) -> Shader:
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    width = LANES if names else 1
    body: list[t.Stmt] = []
    lowerer = Lowerer(shader, {}, body, label=reduction_label(task))
    shared = shared_array(shader, reduce, TOTAL_LANES)
    group = t.Member(shader.workgroup, "x")
    total = accumulate_strided(
        lowerer,
        reduce,
        start=group * TOTAL_LANES + shader.lane,
        stride=t.Member(shader.grid, "x") * TOTAL_LANES,
        width=width,
    )
    body.append(t.Assign(shared[shader.lane], own_total(reduce, total, width)))
    body += join(shader, reduce.kind, shared, count=TOTAL_LANES)
    parts = shader.scratch("parts", reduce.type, written=True)
    store = parts.store(group, shared[t.ZERO])
    body.append(t.If(shader.lane.equals(0), (store,)))
    return shader.finish(
        body,
        groups=_host_parts(task),
        workgroup_size=TOTAL_LANES,
        summary="first of two dispatches: a part per workgroup.",
        variant="" if names else "edge",
        terms=counted_terms(reduce),
        turns=_turns(task, reduce, f"({_host_parts(task)} * {TOTAL_LANES * width})"),
    )


def _finish_shader(task: Task) -> Shader:
    reduce = reduction_of(task)
    shader = ShaderBuilder(task, {})
    parts = shader.scratch("parts", reduce.type, written=False)
    count, total, part = (
        t.Ident(shader.fresh(name)) for name in ("count", "total", "part")
    )
    needed = (shader.size(reduce.indices) + (PART - 1)) // PART
    limited = t.call("min", t.call("max", needed, 1), MAX_PARTS)
    take = accumulate(reduce.kind, total, parts.load(part))
    shared = shared_array(shader, reduce, TOTAL_LANES)
    body: list[t.Stmt] = [
        t.Let(count.name, limited),
        t.Var(total.name, identity(reduce.kind, reduce.type)),
        t.count_up(part.name, shader.lane, count, TOTAL_LANES, take),
        t.Assign(shared[shader.lane], total),
        *join(shader, reduce.kind, shared, count=TOTAL_LANES),
    ]
    lowerer = Lowerer(shader, {}, body, label=reduction_label(task))
    first = shader.lane.equals(0)
    finish_steps(lowerer, task, reduce, Value(shared[t.ZERO]), first)
    return shader.finish(
        body,
        groups="1",
        workgroup_size=TOTAL_LANES,
        summary="second of two dispatches: the parts together.",
        variant="finish",
    )


def _turns(task: Task, reduce: Reduce, stride: str) -> str:
    """Return how often the loops of a lane turn that takes every `stride`-th term."""
    own = f"ceil_div({host_product(reduce.indices)}, {stride})"
    return loop_turns(task, {reduce: own})


def _host_parts(task: Task) -> str:
    """Return the Python text of the number of parts; `_finish_shader` says the same."""
    size = host_product(reduction_of(task).indices)
    return f"min(max(ceil_div({size}, {PART}), 1), {MAX_PARTS})"
