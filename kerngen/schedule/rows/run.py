"""Find the stages that strategy `rows` can run together: those over the same rows.

A row is all elements at one value of the row indices, here i.  A stage reduces each row to
a number, or computes every element of it, or computes one number for it:

    top[i]   = max[j] x[i, j];                    RowRole.REDUCES
    scale[i] = 1.0 / top[i];                      RowRole.ONE
    y[i, j]  = x[i, j] * scale[i];                RowRole.EACH

The lanes that have a row can run such stages one after another, if each stage reads what
the others write at its own row or its own element alone, as `scale[i]` here: no other row
is needed.  Such stages are a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import final

from kerngen.ir.analysis.reads import is_at
from kerngen.ir.nodes import Extent, Index, Role, Tensor
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.store import StoreAt
from kerngen.schedule.orientation import is_columnwise
from kerngen.schedule.task import Task


@final
class RowRole(Enum):
    """The role of a stage in a run: to reduce a row, compute its elements, or one number."""

    REDUCES = "reduces it"
    EACH = "computes every element"
    ONE = "computes one number beside it"


@final
@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive stages over the same rows, in one shader.

    `rows` and `columns` are the indices of the first stage with a reduction.  Other stages
    may have other names for them: only the lengths must be equal.
    """

    stages: tuple[Stage, ...]
    rows: tuple[Index, ...]
    columns: tuple[Index, ...]

    def part(self, stage: Stage) -> RowRole | None:
        """Return the role of `stage` in the run; None if it works on other rows or columns."""
        rows, columns = extents_of(self.rows), extents_of(self.columns)
        domain, reduce = extents_of(stage.domain), stage.reduction
        if reduce is not None:
            fits = domain == rows and extents_of(reduce.indices) == columns
            return RowRole.REDUCES if fits else None
        if domain == rows:
            return RowRole.ONE
        return RowRole.EACH if domain == rows + columns else None

    def outlives(self, tensor: Tensor, stages: Iterable[Stage]) -> bool:
        """Whether a tensor that the run writes must be stored.

        It must if it is no `let`, or if one of `stages` outside of the run reads it.
        """
        if tensor.role is not Role.LET:
            return True
        others = (stage for stage in stages if stage not in self.stages)
        return any(tensor in other.tensors_read for other in others)


def run_of(task: Task) -> Run | str:
    """Return the longest run that begins with the task's stage, or why no run begins there."""
    following = task.following
    # The first reduction determines rows and columns.  It must be in the run.
    first = next((stage for stage in following if stage.reduction), None)
    reduce = None if first is None else first.reduction
    if first is None or reduce is None:
        return "it holds no reduction, and none follows it"
    if is_columnwise(replace(task, stage=first)):
        return f"the rows run along '{reduce.indices[-1].name}', but memory is contiguous across them"
    empty = Run((), first.domain, reduce.indices)
    found = replace(empty, stages=_that_join(task, empty, following))
    if first not in found.stages:
        return "it holds no reduction, and none over its rows follows it"
    # The run ends earlier if a shader can't bind all of its tensors.
    found = replace(found, stages=found.stages[: _few_enough(task, found)])
    if first not in found.stages:
        return f"it takes more than {MAX_TENSORS} tensors up to its reduction"
    return found


def own_columns(run: Run, stage: Stage) -> tuple[Index, ...]:
    """Return the indices by which a stage names the run's columns; () if it has none."""
    reduce = stage.reduction
    return reduce.indices if reduce is not None else stage.domain[len(run.rows) :]


def extents_of(indices: tuple[Index, ...]) -> tuple[Extent, ...]:
    """Return the length of the axis of each index."""
    return tuple(index.extent for index in indices)


def _that_join(task: Task, run: Run, following: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return the stages, from the first on, that can run one after another for a row.

    A stage ends the run if it is over other rows, or if it reads another row or element of
    a tensor that the run writes, or writes one of which the run reads so.
    """
    joined: list[Stage] = []
    written: set[Tensor] = set()
    read_elsewhere: set[Tensor] = set()
    for stage in following:
        own, elsewhere = set(stage.tensors_written), _read_elsewhere(run, stage)
        if (
            not _fits(task, run, stage)
            # A tensor is written by one stage of elements at most: where a row does not fit
            # in registers, later passes read the value back from memory.
            or (run.part(stage) is RowRole.EACH and not written.isdisjoint(own))
            or not (elsewhere | read_elsewhere).isdisjoint(own)
            or not elsewhere.isdisjoint(written)
            or _meets_store(stage, joined)
        ):
            break
        joined.append(stage)
        written |= own
        read_elsewhere |= elsewhere
    return tuple(joined)


def _fits(task: Task, run: Run, stage: Stage) -> bool:
    """Whether a stage works on the rows of a run, and memory is contiguous along them."""
    if run.part(stage) is None:
        return False
    return not (stage.reduction and is_columnwise(replace(task, stage=stage)))


def _meets_store(stage: Stage, before: Sequence[Stage]) -> bool:
    """Whether the stage or one before stores a tensor at a position that the other uses.

    The lane that stores at a position is another one than that which has the element in
    its own row.
    """
    own = {*stage.tensors_read, *stage.tensors_written}
    touched = {
        x for other in before for x in (*other.tensors_read, *other.tensors_written)
    }
    stored = {x for other in before for x in _stored(other)}
    return not (own.isdisjoint(stored) and touched.isdisjoint(_stored(stage)))


def _stored(stage: Stage) -> Iterator[Tensor]:
    """Yield the tensors that a stage writes at a position."""
    for step in stage.steps:
        if isinstance(step, Write) and isinstance(step.value, StoreAt):
            yield step.tensor


def _read_elsewhere(run: Run, stage: Stage) -> set[Tensor]:
    """Return the tensors that a stage reads outside of its own row and element."""
    rows = stage.domain[: len(run.rows)]
    element = (*rows, *own_columns(run, stage))
    return {
        load.tensor
        for load in stage.reads
        if not (is_at(load, rows) or is_at(load, element))
    }


def _few_enough(task: Task, run: Run) -> int:
    """Return how many stages, from the first on, one shader can bind all tensors of."""
    begin, kept = _first_use(run), _last_use_of_kept(task, run)
    for count in range(len(run.stages), 0, -1):
        # A tensor whose last use is within the run stays in registers, without a binding.
        used = [tensor for tensor, place in begin.items() if place < count]
        if sum(kept.get(tensor, count) >= count for tensor in used) <= MAX_TENSORS:
            return count
    return 0


def _first_use(run: Run) -> dict[Tensor, int]:
    """Return the tensors of a run, each with the number of the stage that uses it first."""
    first: dict[Tensor, int] = {}
    for place, stage in enumerate(run.stages):
        for tensor in (*stage.tensors_read, *stage.tensors_written):
            first.setdefault(tensor, place)
    return first


def _last_use_of_kept(task: Task, run: Run) -> dict[Tensor, int]:
    """Return the tensors that may stay in registers, with the number of their last use.

    These are the lets with one number for each row.  A run that ends before the last use
    has to store the tensor.  A use before the run counts as one behind all stages.
    """
    last = {
        tensor: place
        for place, stage in reversed(tuple(enumerate(run.stages)))
        if run.part(stage) is not RowRole.EACH
        for tensor in stage.tensors_written
        if tensor.role is Role.LET
    }
    stages = task.staged.stages
    start = stages.index(run.stages[0])
    for place, stage in enumerate(stages, -start):
        for tensor in last.keys() & stage.tensors_read:
            last[tensor] = max(last[tensor], place) if place >= 0 else len(stages)
    return last


def names_of(stages: Sequence[Stage]) -> str:
    """Return the names of stages, joined by commas: `a, b, c`."""
    return ", ".join(stage.name for stage in stages)
