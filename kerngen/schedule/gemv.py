"""Strategy `gemv`: a product with a vector, or with few rows of one.

The matrix is read along its rows where the reduction is contiguous, and in blocks of
columns where the result is; once, or with the option `rows` once for so many rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.schedule.columnwise import lower_columnwise
from kerngen.schedule.columnwise_block import lower_columnwise_block
from kerngen.schedule.contraction import contraction_of
from kerngen.schedule.program import Variant
from kerngen.schedule.rowwise import lower_rowwise
from kerngen.schedule.rowwise_block import lower_rowwise_block
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


def rows_of(options: Options) -> int:
    """Return how many rows share one read of the matrix."""
    (count,) = options.get("rows", (1,))
    return count


def suits_gemv(task: Task, options: Options) -> str:
    """Say why a stage that `gemv` fits does not suit the options; empty if it does."""
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    if rows_of(options) == 1 or found.row is not None:
        return ""
    column = found.column.name
    return f"'rows' needs an index of one factor alone, as {column} is of the other"


def lower_gemv(task: Task, options: Options) -> Iterator[Variant]:
    """Return the variants for the way in which the matrix lies."""
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    count, along_rows = rows_of(options), found.right_axis == found.last
    if count > 1:
        lower = lower_rowwise_block if along_rows else lower_columnwise_block
        return lower(task, count)
    return lower_rowwise(task) if along_rows else lower_columnwise(task)
