"""Schedules that can't be used, whatever the arguments and the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kerngen.check.faults_schedules import UnreachableSchedule
from kerngen.source.diagnostic import Faults
from kerngen.syntax import ast

_Place: TypeAlias = tuple[ast.Identifier, ast.Identifier | None, ast.Expr | None]
"""A kernel, a stage of it or all, and what guards a schedule of that."""

_Way: TypeAlias = tuple[ast.Identifier, tuple[ast.Option, ...]] | None
"""A strategy with its options; None for the one that always fits."""


def report_dead(faults: Faults, schedules: list[ast.ScheduleItem]) -> None:
    """Report each schedule of a file that an earlier one always precedes."""
    seen: dict[tuple[_Place, _Way], ast.ScheduleItem] = {}
    for item in schedules:
        found = (seen.get(key) for key in _that_precede(item))
        before = [earlier for earlier in found if earlier is not None]
        if before:
            first = min(before, key=lambda earlier: earlier.span.start)
            faults.add(UnreachableSchedule(span=item.span, other=first.span))
        else:
            seen.setdefault(((item.kernel, item.stage, item.guard), _way(item)), item)


def _that_precede(item: ast.ScheduleItem) -> Iterator[tuple[_Place, _Way]]:
    """Yield what schedules say that are used wherever this one could be.

    A strategy may not fit a stage, or be over the adapter's limits; then the next one is
    tried.  `generic` always fits, and any other at least where its like does.
    """
    for stage in {None, item.stage}:
        for guard in {None, item.guard}:
            for way in {None, _way(item)}:
                yield (item.kernel, stage, guard), way


def _way(item: ast.ScheduleItem) -> _Way:
    if item.strategy.name == "generic":
        return None
    return item.strategy, item.options
