"""Reductions along rows: the variants that read vectors, and the trips of their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kerngen.ir.nodes import Reduce
from kerngen.plan.size import ALWAYS, NEVER, Guard, Size, ceil_div
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.lowering.steps import last_extents, vector_tensors
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import Variant
from kerngen.schedule.scalar_only import is_scalar_only
from kerngen.schedule.sizes import all_divisible, domain_size, loop_trips
from kerngen.schedule.task import Task


def by_width(
    task: Task, variant: Callable[[str, Guard, set[str]], Variant]
) -> Iterator[Variant]:
    """Yield a variant that reads vectors, where sizes allow, and one for any size.

    `variant` makes each, given its name, its condition, and the tensors to read as vectors.
    """
    names = vector_names(task)
    when = rows_divide(task, names, LANES)
    if when != NEVER:
        yield variant("aligned", when, names)
    yield variant("edge", ALWAYS, set())


def rows_divide(task: Task, names: set[str], run: int) -> Guard:
    """Return the guard that rows of the tensors `names` are whole runs of `run` elements."""
    extents = last_extents(task.stage, (reduction_of(task).body,), names)
    return all_divisible(extents, run) if names else NEVER


def vector_names(task: Task) -> set[str]:
    """Return the names of the tensors that can be read as vectors along the reduction.

    That is along its last index.  There are none unless that index ranges over the whole last
    axis of all of them, as the loop must end where their rows do.
    """
    if not is_scalar_only(task.stage):
        return set()
    reduce = reduction_of(task)
    last = reduce.indices[-1]
    names = vector_tensors(task.stage, (reduce.body,), last)
    extents = last_extents(task.stage, (reduce.body,), names)
    return names if all(extent == last.extent for extent in extents) else set()


def row_trips(task: Task, reduce: Reduce, stride: Size) -> Size:
    """Return the number of turns of a lane's loops if it takes every `stride`-th term."""
    return loop_trips(task, {reduce: ceil_div(domain_size(reduce.indices), stride)})
