"""Schedules that can't be used, whatever the arguments and the adapter."""

from __future__ import annotations

from kerngen.check.faults_schedules import UnreachableSchedule
from kerngen.source.diagnostic import Faults
from kerngen.syntax import ast


def report_dead(faults: Faults, schedules: list[ast.ScheduleItem]) -> None:
    """Report each schedule of a file that an earlier one always precedes."""
    for n, item in enumerate(schedules):
        first = next((e for e in schedules[:n] if _precedes(e, item)), None)
        if first is not None:
            faults.add(UnreachableSchedule(span=item.span, other=first.span))


def _precedes(earlier: ast.ScheduleItem, item: ast.ScheduleItem) -> bool:
    """Whether the earlier of two schedules is used wherever the other could be.

    A strategy may not fit a stage, or be over the adapter's limits; then the next one is
    tried.  `generic` always fits, and any other at least where its like does.
    """
    same_place = earlier.kernel == item.kernel and earlier.stage in {None, item.stage}
    alike = (earlier.strategy, earlier.options) == (item.strategy, item.options)
    fits = earlier.strategy.name == "generic" or alike
    return (
        same_place and fits and (earlier.guard is None or earlier.guard == item.guard)
    )
