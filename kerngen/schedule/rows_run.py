"""Find what strategy `rows` can run together: stages that share the rows they work on.

A row is what stands at one value of the row indices.  A stage either reduces each row to
a number, or computes every element of it, or computes one number beside it:

    top[i]   = max[j] x[i, j];                    reduces
    scale[i] = 1.0 / top[i];                      one number
    y[i, j]  = x[i, j] * scale[i];                every element

Whoever holds a row can run such stages one after the other, if they read what they
write among themselves at their own row, or at their own element, alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import final

from kerngen.ir.nodes import Extent, Index, Load, Reduce, Role, Tensor
from kerngen.ir.reads import is_at, loads, outer_reductions
from kerngen.ir.stages import Stage, Write
from kerngen.ir.staging import MAX_TENSORS
from kerngen.ir.walk import walk
from kerngen.schedule.orientation import is_columnwise
from kerngen.schedule.task import Task


@final
class Part(Enum):
    """What a stage does with a row."""

    REDUCES = "reduces it"
    EACH = "computes every element"
    ONE = "computes one number beside it"


@final
@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring stages over the same rows; their indices may have other names."""

    stages: tuple[Stage, ...]
    rows: tuple[Index, ...]
    columns: tuple[Index, ...]

    def part(self, stage: Stage) -> Part | None:
        """Return what a stage does with a row; None if it is not about these rows."""
        rows, columns = extents_of(self.rows), extents_of(self.columns)
        domain, reduce = extents_of(stage.domain), reduction_in(stage)
        if reduce is not None:
            fits = domain == rows and extents_of(reduce.indices) == columns
            return Part.REDUCES if fits else None
        if domain == rows:
            return Part.ONE
        return Part.EACH if domain == rows + columns else None

    def outlives(self, tensor: Tensor, stages: Iterable[Stage]) -> bool:
        """Whether what the run writes must be stored; `stages` are the kernel's."""
        if tensor.role is not Role.LET:
            return True
        others = (stage for stage in stages if stage not in self.stages)
        return any(load.tensor == tensor for other in others for load in reads(other))


def run_of(task: Task) -> Run | str:
    """Return the longest run that begins with the task's stage, or why there is none."""
    following = task.following
    first = next((stage for stage in following if reduction_in(stage)), None)
    reduce = None if first is None else reduction_in(first)
    if first is None or reduce is None:
        return "it holds no reduction, and none follows it"
    if is_columnwise(replace(task, stage=first)):
        return (
            f"rows end along '{reduce.indices[-1].name}', but memory runs across them"
        )
    found = Run((), first.domain, reduce.indices)
    for stage in following:
        if not _joins(task, found, stage):
            break
        found = replace(found, stages=(*found.stages, stage))
    if first not in found.stages:
        return "it holds no reduction, and none over its rows follows it"
    while first in found.stages and len(_bound(task, found)) > MAX_TENSORS:
        found = replace(found, stages=found.stages[:-1])
    if first not in found.stages:
        return f"it takes more than {MAX_TENSORS} tensors up to its reduction"
    return found


def reduction_in(stage: Stage) -> Reduce | None:
    """Return the stage's reduction, if it has one."""
    found = (r for step in stage.steps for r in outer_reductions(step.value))
    return next(found, None)


def reads(stage: Stage) -> Iterator[Load]:
    """Yield every read of a stage."""
    return (load for step in stage.steps for load in loads(step.value))


def writes(stage: Stage) -> Iterator[Tensor]:
    """Yield every tensor that a stage writes."""
    return (step.tensor for step in stage.steps if isinstance(step, Write))


def indices_in(stage: Stage) -> Iterator[Index]:
    """Yield every index of a stage, those of reductions included."""
    yield from stage.domain
    for step in stage.steps:
        for node in walk(step.value):
            if isinstance(node, Reduce):
                yield from node.indices


def own_columns(run: Run, stage: Stage) -> tuple[Index, ...]:
    """Return what a stage calls the columns; nothing if it computes one number."""
    reduce = reduction_in(stage)
    return reduce.indices if reduce is not None else stage.domain[len(run.rows) :]


def extents_of(indices: tuple[Index, ...]) -> tuple[Extent, ...]:
    """Return how long a domain is along each index."""
    return tuple(index.extent for index in indices)


def _joins(task: Task, run: Run, stage: Stage) -> bool:
    """Whether a workgroup that holds a row can run the stage after those of the run."""
    if run.part(stage) is None:
        return False
    if reduction_in(stage) and is_columnwise(replace(task, stage=stage)):
        return False
    before = {tensor for member in run.stages for tensor in writes(member)}
    if run.part(stage) is Part.EACH and not before.isdisjoint(writes(stage)):
        # What it held may be read back later, where a row does not fit in registers.
        return False
    members = (*run.stages, stage)
    written = {tensor for member in members for tensor in writes(member)}
    return all(_keeps_to_its_row(run, member, written) for member in members)


def _keeps_to_its_row(run: Run, stage: Stage, written: set[Tensor]) -> bool:
    rows = stage.domain[: len(run.rows)]
    element = (*rows, *own_columns(run, stage))
    return all(
        is_at(load, rows) or is_at(load, element)
        for load in reads(stage)
        if load.tensor in written
    )


def _bound(task: Task, run: Run) -> set[Tensor]:
    """Return the tensors that a shader of the run may have to bind."""
    bound = {load.tensor for stage in run.stages for load in reads(stage)}
    bound |= {tensor for stage in run.stages for tensor in writes(stage)}
    kept_in_registers = {
        tensor
        for stage in run.stages
        if run.part(stage) is not Part.EACH
        for tensor in writes(stage)
        if not run.outlives(tensor, task.staged.stages)
    }
    return bound - kept_in_registers


def names_of(stages: Sequence[Stage]) -> str:
    """Return the names of stages, as a list in words."""
    return ", ".join(stage.name for stage in stages)
