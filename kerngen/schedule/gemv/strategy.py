"""Strategy `gemv`: a product with a vector, or with few rows of one.

The matrix is read along its rows where the reduction is contiguous, and in blocks of
columns where the result is; once, or with the option `rows` once for this many rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.schedule.contraction import contraction_of
from kerngen.schedule.gemv.columnwise_block import lower_columnwise_block
from kerngen.schedule.gemv.rowwise import layout_of, lower_rowwise_block
from kerngen.schedule.gemv.shape import LAYOUTS, NOT_FOR, GemvShape, shape_of
from kerngen.schedule.program import Variant
from kerngen.schedule.task import Options, Task


def fits_gemv(task: Task) -> str:
    """Return why `gemv` does not fit the stage, or "" if it does."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    if not found.is_product:
        return "it is not a sum of products"
    if found.right_axis is None:
        column, over = found.column.name, found.last.name
        return f"no factor is contiguous along {over} or along {column}"
    return ""


def suits_gemv(task: Task, options: Options) -> str:
    """Return why a stage that `gemv` fits does not suit the options, or an empty text."""
    found, layout = layout_of(task)
    shape, along_rows = shape_of(options, layout), layout != "columns"
    if fault := next(shape.faults(), ""):
        return fault
    if shape.rows > 1 and found.row is None:
        column = found.column.name
        return f"'rows' needs an index that belongs to one factor alone, as {column} does to the other"
    lying = found.last if along_rows else found.column
    unused = [f"'{name}'" for name in NOT_FOR[along_rows] if name in options]
    if unused:
        return f"{unused[0]} is for matrices that are not contiguous along {lying.name}"
    return ""


def settled_gemv(options: Options) -> tuple[GemvShape, ...]:
    """Return the shapes for a schedule's options: for either direction of the matrix."""
    return tuple(shape_of(options, layout) for layout in LAYOUTS)


def lower_gemv(task: Task, options: Options) -> Iterator[Variant]:
    """Return the variants for the direction in which the matrix lies in memory."""
    _, layout = layout_of(task)
    shape = shape_of(options, layout)
    lower = lower_columnwise_block if layout == "columns" else lower_rowwise_block
    return lower(task, shape)
