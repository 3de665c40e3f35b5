"""How many lanes share a row whose range is read of tensors, as the entries of a sparse row.

A workgroup for each row would have nothing to do but for its first lanes.  All terms are read
once, whatever the lengths are; a row much longer than the others takes its lanes longer.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.staging.keyed import ragged
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.task import Task

LANES_BY_MEAN: Final = ((32, 8), (256, 32))
"""Up to which mean length so many lanes share a row; for longer ones a workgroup does.

Each lane takes four neighbours, so that of a row of the mean all lanes have some.  Fewer
lanes for shorter rows would make loops of more than 65,536 turns possible, at which some
software adapters stop, of no more than a million terms.
"""


def lanes_by_mean(task: Task) -> tuple[tuple[int, int], ...]:
    """Return mean lengths of rows and their lanes; none where no ranges are read."""
    found = ragged(conditional(reduction_of(task)))
    return () if found is None else LANES_BY_MEAN
