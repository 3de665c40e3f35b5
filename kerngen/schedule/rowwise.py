"""Reductions along rows: which variants read vectors, and how often their loops turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kerngen.ir.nodes import Reduce
from kerngen.schedule.cooperation import reduction_of
from kerngen.schedule.plain import is_plain
from kerngen.schedule.program import Variant
from kerngen.schedule.steps import last_extents, vector_tensors
from kerngen.schedule.task import Task, host_multiple, host_product
from kerngen.schedule.trips import loop_turns
from kerngen.schedule.values import LANES


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


def row_turns(task: Task, reduce: Reduce, stride: str) -> str:
    """Return how often the loops of a lane turn that takes every `stride`-th term."""
    own = f"ceil_div({host_product(reduce.indices)}, {stride})"
    return loop_turns(task, {reduce: own})
