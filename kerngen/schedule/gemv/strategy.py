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
from kerngen.schedule.gemv.row_statistic import (
    NO_PRODUCT,
    RowStatistic,
    row_statistic_of,
)
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
    alone, found = fits_gemv(task), statistic_of(task)
    if not alone or not isinstance(found, str):
        return ""
    return (
        alone
        if found == NO_PRODUCT
        else f"{alone}; and of the product behind it, {found}"
    )


def gemv_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that run together: a product, behind the statistic of its rows."""
    return (task.stage,) if isinstance(statistic_of(task), str) else task.following[:2]


def statistic_of(task: Task) -> RowStatistic | str:
    """Return the statistic of rows that a stage computes for a product, or why it is none.

    The matrix of the product must be contiguous along its terms.
    """
    if not isinstance(contraction_of(task), str):
        return "it is a product itself"
    found = row_statistic_of(task)
    if isinstance(found, str):
        return found
    if fault := fits_gemv(found.product):
        return f"of what follows, {fault}"
    _, layout = layout_of(found.product)
    along = found.last.name
    return (
        f"its matrix is not contiguous along {along}" if layout == "columns" else found
    )


def suits_gemv(task: Task, options: Options) -> str:
    """Return why a stage that `gemv` fits does not suit the options, or "" if it does."""
    statistic = statistic_of(task)
    product = task if isinstance(statistic, str) else statistic.product
    found, layout = layout_of(product)
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
    statistic = statistic_of(task)
    if not isinstance(statistic, str):
        _, layout = layout_of(statistic.product)
        shape = shape_of(options, layout)
        return lower_rowwise_block(statistic.product, shape, statistic)
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
    task: Task, shape: GemvShape, statistic: RowStatistic | None = None
) -> Iterator[Variant]:
    """Yield the variants of a product along the reduction: long runs first, any size last.

    With a `statistic`, they compute that of each row, too.
    """
    before: Guard = NEVER
    for block in _blocks(task, shape, statistic):
        when = rows_divide(task, block.names, block.width)
        # A variant under the condition of the one before would never run.
        if when not in (NEVER, before):
            yield Variant(block.variant, when, (block.shader(),))
        before = when
    edge = Rowwise(task, shape, "edge", 1, set(), statistic=statistic)
    yield Variant("edge", ALWAYS, (edge.shader(),))


def _blocks(
    task: Task, shape: GemvShape, statistic: RowStatistic | None
) -> Iterator[Rowwise]:
    """Yield the writers that read several neighbours at once, longest runs first.

    Of integers of 4 bits that are four words (32 integers), then eight integers; of products
    of bytes by bytes 16, then four; of any others four.
    """
    found, _ = layout_of(task)
    names = vector_names(task)
    if not _reads_narrow(task):
        yield Rowwise(task, shape, "aligned", LANES, names, statistic=statistic)
        return
    # A matrix of narrow integers: four words at once, if the rows fit workgroup memory.
    words = words_of(task, found.right, found.last, names)
    if words is not None:
        storage, tensors = words
        run = WORDS * storage.per_word
        if fits_words(shape, run):
            yield WordRowwise(task, shape, "aligned", run, names, tensors, statistic)
            yield NarrowRowwise(
                task, shape, "eights", EIGHT, names, statistic=statistic
            )
            return
    # Both factors are bytes; or there are integers of 4 or 8 bits, eight at once.
    if factors := dot_factors(task, found, names):
        tensors = frozenset(load.tensor.name for load in factors)
        yield DotRowwise(task, shape, "aligned", DOT_RUN, names, tensors)
        yield Rowwise(task, shape, "fours", LANES, names)
        return
    if codes_of(found.right, found.over, names):
        yield NarrowRowwise(task, shape, "aligned", EIGHT, names, statistic=statistic)
    else:
        yield Rowwise(task, shape, "aligned", LANES, names, statistic=statistic)
