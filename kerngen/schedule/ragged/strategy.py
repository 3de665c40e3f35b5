"""Strategy `ragged`: reductions over ranges that are read, as rows of a sparse matrix.

    y[i] = sum[e when u32(e) >= start[i] and u32(e) < start[i + 1]] value[e] * x[column[e]]

A row is the range of a result: the terms from `start[i]` up to `start[i + 1]`.  As many
lanes share each row as suits the mean length, of which the host knows terms and rows.  Only
the device knows how long each row is: a row that would take its lanes more than 16 turns is
long, and left to whole workgroups, several for the longest (`long_rows.py`).  So the time
follows from the number of all terms, however they are distributed over the rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.plan.size import ALWAYS, NEVER
from kerngen.schedule.program import Variant
from kerngen.schedule.ragged.long_rows import (
    BUFFERS,
    clearing,
    finishing,
    long_scratch,
    taking_long,
)
from kerngen.schedule.ragged.shape import RaggedRows, ragged_of
from kerngen.schedule.ragged.short_rows import every_row, short_rows
from kerngen.schedule.sizes import at_most
from kerngen.schedule.task import Options, Task

FEW_TERMS: Final = 16384
"""Up to this many terms there are no parts: a workgroup takes a row of all in about 20 us."""

LANES_BY_MEAN: Final = ((32, 8), (128, 32))
"""Mean lengths of rows, each with how many lanes share a row up to that mean."""

MANY_LANES: Final = 64
"""How many lanes share a row of a greater mean length.

On an H200, 16,384 rows of 1,024 on average, one of them of 512,000, take 52 us with 64
lanes to a row, 54 with 128, and 60 with 256.
"""


def fits_ragged(task: Task) -> str:
    """Return why `ragged` does not fit the stage, or "" if it does."""
    found = ragged_of(task)
    return found if isinstance(found, str) else ""


def ragged_lanes(options: Options) -> int:
    """Return how many lanes share a short row: the option `lanes`, or its default."""
    return options.get("lanes", (MANY_LANES,))[0]


def suits_ragged(task: Task, options: Options) -> str:
    """Return why a stage that `ragged` fits does not suit the options, or "" if it does."""
    del task
    lanes = ragged_lanes(options)
    return f"{lanes} lanes are not a power of two" if lanes & (lanes - 1) else ""


def ragged_options(options: Options) -> Hashable:
    """Return the option `lanes` or its default: schedules with the same share shaders."""
    return ragged_lanes(options)


def lower_ragged(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: for few terms, one dispatch; for many, four that cut long rows."""
    found = ragged_of(task, ragged_lanes(options))
    assert isinstance(found, RaggedRows), found
    few = at_most((found.index,), FEW_TERMS)
    if _has_room(task):
        if few != NEVER:
            yield Variant("few", few, (every_row(found),))
        shaders = (
            clearing(found),
            short_rows(found),
            taking_long(found),
            finishing(found),
        )
        yield Variant("", ALWAYS, shaders, long_scratch(found))
        return
    # Without two free bindings, each long row is left to one workgroup.
    yield Variant("few", ALWAYS, (every_row(found),))


def _has_room(task: Task) -> bool:
    """Whether a dispatch can bind the parts of long rows beside all of the stage's tensors."""
    bound = {*task.stage.tensors_written, *task.stage.tensors_read}
    return len(bound) + BUFFERS <= MAX_TENSORS
