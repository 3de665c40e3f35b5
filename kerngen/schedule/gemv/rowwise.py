"""Products along the reduction: the variants, by how many neighbours a lane reads at once."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.plan.size import ALWAYS, NEVER, Guard
from kerngen.schedule.contraction import Contraction, contraction_of
from kerngen.schedule.gemv.dot_block import DOT_RUN, DotRowwise, dot_factors
from kerngen.schedule.gemv.narrow_block import (
    NarrowRowwise,
    WordRowwise,
    fits_words,
)
from kerngen.schedule.gemv.narrow_runs import EIGHT, WORDS, codes_of, words_of
from kerngen.schedule.gemv.rowwise_block import Rowwise
from kerngen.schedule.gemv.shape import GemvShape, MatrixLayout
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import Variant
from kerngen.schedule.reduce.rowwise import rows_divide, vector_names
from kerngen.schedule.task import Task


def layout_of(task: Task) -> tuple[Contraction, MatrixLayout]:
    """Return a stage's contraction, and how its matrix lies in memory."""
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    if found.right_axis != found.last:
        return found, "columns"
    if not _reads_narrow(task):
        return found, "rows"
    words = words_of(task, found.right, found.last, vector_names(task))
    if words is None:
        return found, "rows"
    return found, "bytes" if words[0].bits == EIGHT else "nibbles"


def _reads_narrow(task: Task) -> bool:
    return any(tensor.narrow for tensor in task.stage.tensors_read)


def lower_rowwise_block(task: Task, shape: GemvShape) -> Iterator[Variant]:
    """Return the variants that do a block of rows and columns in one dispatch."""
    before: Guard = NEVER
    for block in _blocks(task, shape):
        when = rows_divide(task, block.names, block.width)
        if when not in (NEVER, before):
            yield Variant(block.variant, when, (block.shader(),))
        before = when
    edge = Rowwise(task, shape, "edge", 1, set())
    yield Variant("edge", ALWAYS, (edge.shader(),))


def _blocks(task: Task, shape: GemvShape) -> Iterator[Rowwise]:
    """Yield the writers that read several neighbours at once, longest runs first."""
    found, _ = layout_of(task)
    names = vector_names(task)
    if not _reads_narrow(task):
        yield Rowwise(task, shape, "aligned", LANES, names)
        return
    words = words_of(task, found.right, found.last, names)
    if words is not None:
        storage, tensors = words
        run = WORDS * storage.per_word
        if fits_words(shape, run):
            yield WordRowwise(task, shape, "aligned", run, names, tensors)
            yield NarrowRowwise(task, shape, "eights", EIGHT, names)
            return
    if factors := dot_factors(task, found, names):
        tensors = frozenset(load.tensor.name for load in factors)
        yield DotRowwise(task, shape, "aligned", DOT_RUN, names, tensors)
        yield Rowwise(task, shape, "fours", LANES, names)
        return
    if codes_of(found.right, found.over, names):
        yield NarrowRowwise(task, shape, "aligned", EIGHT, names)
    else:
        yield Rowwise(task, shape, "aligned", LANES, names)
