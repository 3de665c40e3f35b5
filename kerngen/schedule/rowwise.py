"""One workgroup per element of the domain: its row is what the reduction goes over.

Lanes stride along the last reduction index, where memory is contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, position_name, unravel
from kerngen.schedule.plain import is_plain
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.steps import last_extents, vector_tensors
from kerngen.schedule.task import Task, host_multiple, host_product
from kerngen.schedule.trips import loop_turns
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

ROW_LANES: Final = 128


def lower_rowwise(task: Task) -> Iterator[Variant]:
    """Return the variants that do a row in one dispatch."""

    def variant(name: str, when: str, names: set[str]) -> Variant:
        return Variant(name, when, (_shader(task, names),))

    return by_width(task, variant)


def by_width(
    task: Task, variant: Callable[[str, str, set[str]], Variant]
) -> Iterator[Variant]:
    """Yield a variant that reads vectors, where sizes allow, and one for any size.

    Each is made of its name, its condition, and the tensors that it reads as vectors.
    """
    names = _vector_names(task)
    extents = last_extents(task.stage, (reduction_of(task).body,), names)
    when = host_multiple(extents, LANES) if names else None
    if when is not None:
        yield variant("aligned", when, names)
    yield variant("edge", "", set())


def _vector_names(task: Task) -> set[str]:
    """Return the tensors read in runs along the last reduction index.

    None is, unless that index ranges over a whole last axis of each: the loop must end
    where the rows do.
    """
    if not is_plain(task.stage):
        return set()
    reduce = reduction_of(task)
    last = reduce.indices[-1]
    names = vector_tensors(task.stage, (reduce.body,), last)
    extents = last_extents(task.stage, (reduce.body,), names)
    return names if all(extent == last.extent for extent in extents) else set()


def _shader(task: Task, names: set[str]) -> Shader:
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
        turns=row_turns(task, reduce, str(ROW_LANES * width)),
    )


def row_turns(task: Task, reduce: Reduce, stride: str) -> str:
    """Return how often the loops of a lane turn that takes every `stride`-th term."""
    own = f"ceil_div({host_product(reduce.indices)}, {stride})"
    return loop_turns(task, {reduce: own})
