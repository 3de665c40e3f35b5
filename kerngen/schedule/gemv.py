"""Strategy `gemv`: a product with a vector, or with few rows of one.

The matrix is read once, along its rows where the reduction is contiguous, and in blocks
of columns where the result is.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    if not found.is_product:
        return "it is not a sum of products"
    if found.right_axis is None:
        column, over = found.column.name, found.last.name
        return f"no factor is read in runs along {over}, or along {column}"
    return ""


def lower_gemv(task: Task, options: Options) -> Iterator[Variant]:
    """Return the variants for the way in which the matrix lies."""
    del options
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    if found.right_axis == found.last:
        return lower_rowwise(task)
    return lower_columnwise(task)
