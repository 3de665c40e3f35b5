"""A candidate among the default schedules of a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.plan.size import ALWAYS, Guard
from kerngen.schedule.task import Options


@final
@dataclass(frozen=True, slots=True)
class ScheduleChoice:
    """A strategy with its options, the guard under which it applies, and the reason for it.

    It runs up to `together` stages, the first one included.
    """

    strategy: str
    reason: str
    guard: Guard = ALWAYS
    options: Options = field(default_factory=dict)
    together: int = 1
