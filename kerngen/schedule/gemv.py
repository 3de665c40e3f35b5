"""Strategy `gemv`: a product with a vector, or with few rows of one.

The matrix is read once, along its rows where the reduction is contiguous, and in blocks
of columns where the result is.
"""

from __future__ import annotations

from kerngen.ir.nodes import IndexValue
from kerngen.schedule.columnwise import lower_columnwise
from kerngen.schedule.contraction import contraction_of
from kerngen.schedule.program import Variant
from kerngen.schedule.rowwise import lower_rowwise
from kerngen.schedule.task import Options, Task


def fits_gemv(task: Task) -> str:
    """Say why `gemv` does not fit the stage; empty if it does."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    last = found.right.subscripts[-1]
    if last not in (IndexValue(found.over), IndexValue(task.domain[-1])):
        name = found.right.tensor.name
        return f"neither the sum nor the result runs along the last axis of '{name}'"
    return ""


def lower_gemv(task: Task, options: Options) -> tuple[Variant, ...]:
    """Return the variants for the way in which the matrix lies."""
    del options
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    if found.right.subscripts[-1] == IndexValue(found.over):
        return lower_rowwise(task)
    return lower_columnwise(task)
