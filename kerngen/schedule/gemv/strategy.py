"""Strategy `gemv`: a product with a vector, or with few rows of one.

The matrix is read along its rows where it is contiguous along the reduction
(`rowwise_block.py`, of narrow integers `narrow_block.py` and `dot_block.py`), and in blocks of
columns where it is contiguous along the result (`columnwise_block.py`).  It is read once, or
with the option `rows` once for that many rows of the left factor.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.ir.staging.stages import Stage
from kerngen.plan.size import ALWAYS, NEVER, Guard
from kerngen.schedule.contraction import Contraction, contraction_of
from kerngen.schedule.gemv.columnwise_block import lower_columnwise_block
from kerngen.schedule.gemv.dot_block import DOT_RUN, DotRowwise, dot_factors
from kerngen.schedule.gemv.narrow_block import NarrowRowwise, WordRowwise, fits_words
from kerngen.schedule.gemv.narrow_runs import EIGHT, WORDS, codes_of, words_of
from kerngen.schedule.gemv.row_sum import RowSum, row_sum_of
from kerngen.schedule.gemv.rowwise_block import Rowwise
from kerngen.schedule.gemv.shape import (
    LAYOUTS,
    NOT_FOR,
    GemvShape,
    MatrixLayout,
    shape_of,
)
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import Variant
from kerngen.schedule.reduce.rowwise import rows_divide, vector_names
from kerngen.schedule.task import Options, Task


def fits_gemv(task: Task) -> str:
    """Return why `gemv` does not fit the stage alone, or "" if it does."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    if not found.is_product:
        return "it is not a sum of products"
    if found.right_axis is None:
        column, over = found.column.name, found.last.name
        return f"no factor is contiguous along {over} or along {column}"
    return ""


def fits_gemv_run(task: Task) -> str:
    """Return why `gemv` fits neither the stage alone nor with the one behind it, else ""."""
    return "" if rows_of_product(task) else fits_gemv(task)


def gemv_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that run together: a product, behind the number of its rows."""
    found = rows_of_product(task)
    if found is None:
        return (task.stage,)
    return task.following[:2]


def rows_of_product(task: Task) -> RowSum | None:
    """Return the number of rows that a stage computes for a product behind it, if any.

    The matrix of the product must lie along its terms.
    """
    if not isinstance(contraction_of(task), str):
        return None
    found = row_sum_of(task)
    if found is None or fits_gemv(found.product):
        return None
    _, layout = layout_of(found.product)
    return None if layout == "columns" else found


def suits_gemv(task: Task, options: Options) -> str:
    """Return why a stage that `gemv` fits does not suit the options, or "" if it does."""
    rows = rows_of_product(task)
    found, layout = layout_of(task if rows is None else rows.product)
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
    """Return the shapes that result from options and defaults, one for each layout of a matrix.

    Schedules with the same shapes share their shaders, however their options are written.
    """
    return tuple(shape_of(options, layout) for layout in LAYOUTS)


def lower_gemv(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants for the layout of the matrix: contiguous by rows, or by columns."""
    if rows := rows_of_product(task):
        _, layout = layout_of(rows.product)
        return lower_rowwise_block(rows.product, shape_of(options, layout), rows)
    _, layout = layout_of(task)
    shape = shape_of(options, layout)
    lower = lower_columnwise_block if layout == "columns" else lower_rowwise_block
    return lower(task, shape)


# Variants for matrices along the reduction: by how many neighbours a lane reads at once.


def layout_of(task: Task) -> tuple[Contraction, MatrixLayout]:
    """Return a stage's contraction, and how its matrix lies in memory.

    "columns" is contiguous along the result, the others along the reduction: "bytes" and
    "nibbles" are narrow integers that are read by words, "rows" are all other elements.
    """
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    if found.right_axis != found.last:
        return found, "columns"
    # Runs of words are along one index.
    if not _reads_narrow(task) or len(found.over) > 1:
        return found, "rows"
    words = words_of(task, found.right, found.last, vector_names(task))
    if words is None:
        return found, "rows"
    return found, "bytes" if words[0].bits == EIGHT else "nibbles"


def _reads_narrow(task: Task) -> bool:
    return any(tensor.narrow for tensor in task.stage.tensors_read)


def lower_rowwise_block(
    task: Task, shape: GemvShape, row_sum: RowSum | None = None
) -> Iterator[Variant]:
    """Yield the variants of a product along the reduction: long runs first, any size last.

    With a `row_sum`, they compute the number of each row, too.
    """
    before: Guard = NEVER
    for block in _blocks(task, shape, row_sum):
        when = rows_divide(task, block.names, block.width)
        # A variant under the condition of the one before would never run.
        if when not in (NEVER, before):
            yield Variant(block.variant, when, (block.shader(),))
        before = when
    edge = Rowwise(task, shape, "edge", 1, set(), row_sum=row_sum)
    yield Variant("edge", ALWAYS, (edge.shader(),))


def _blocks(task: Task, shape: GemvShape, row_sum: RowSum | None) -> Iterator[Rowwise]:
    """Yield the writers that read several neighbours at once, longest runs first.

    Of integers of 4 bits that are four words (32 integers), then eight integers; of products
    of bytes by bytes 16, then four; of any others four.
    """
    found, _ = layout_of(task)
    names = vector_names(task)
    if not _reads_narrow(task):
        yield Rowwise(task, shape, "aligned", LANES, names, row_sum=row_sum)
        return
    # A matrix of narrow integers: four words at once, if the rows fit workgroup memory.
    words = words_of(task, found.right, found.last, names)
    if words is not None:
        storage, tensors = words
        run = WORDS * storage.per_word
        if fits_words(shape, run):
            yield WordRowwise(task, shape, "aligned", run, names, tensors, row_sum)
            yield NarrowRowwise(task, shape, "eights", EIGHT, names, row_sum=row_sum)
            return
    # Both factors are bytes; or there are integers of 4 or 8 bits, eight at once.
    if factors := dot_factors(task, found, names):
        tensors = frozenset(load.tensor.name for load in factors)
        yield DotRowwise(task, shape, "aligned", DOT_RUN, names, tensors)
        yield Rowwise(task, shape, "fours", LANES, names)
        return
    if codes_of(found.right, found.over, names):
        yield NarrowRowwise(task, shape, "aligned", EIGHT, names, row_sum=row_sum)
    else:
        yield Rowwise(task, shape, "aligned", LANES, names, row_sum=row_sum)
