"""Strategy `scan` across memory: a lane scans a row of its own, beside its neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.schedule.program import Variant
from kerngen.schedule.task import Task


def lower_across(task: Task) -> Iterator[Variant]:
    raise NotImplementedError
