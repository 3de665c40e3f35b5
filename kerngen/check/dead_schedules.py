"""Schedules that can't be used, whatever the arguments and the adapter."""

from __future__ import annotations

from typing import TypeAlias

from kerngen.check.faults_schedules import UnreachableSchedule
from kerngen.source.diagnostic import Faults
from kerngen.syntax import ast

_Guarded: TypeAlias = tuple[ast.Identifier, ast.Expr | None]
"""A kernel, and what guards a schedule of it."""


def report_dead(faults: Faults, schedules: list[ast.ScheduleItem]) -> None:
    """Report each schedule of a file that an earlier one always precedes."""
    seen: dict[_Guarded, list[ast.ScheduleItem]] = {}
    for item in schedules:
        before = (seen.get((item.kernel, guard), []) for guard in {None, item.guard})
        found = (e for like in before for e in like if _precedes(e, item))
        first = min(found, key=lambda earlier: earlier.span.start, default=None)
        if first is None:
            seen.setdefault((item.kernel, item.guard), []).append(item)
        else:
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
