"""Schedules that can't be used, whatever the arguments and the adapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

from kerngen.check.faults.schedules import UnreachableSchedule
from kerngen.check.schedules.matching import Scheduled
from kerngen.source.diagnostic import Faults
from kerngen.source.similar import enumerated
from kerngen.source.text import Span
from kerngen.syntax import ast

_Place: TypeAlias = tuple[str, ast.Identifier | None, ast.Expr | None]
"""A kernel, a stage of it or all, and what guards a schedule of that."""

_Way: TypeAlias = tuple[ast.Identifier, tuple[ast.Option, ...]] | None
"""A strategy with its options; None for the one that always fits."""

_Seen: TypeAlias = dict[tuple[_Place, _Way], tuple[int, Scheduled]]
"""What came before, with its number in the order of the text."""


def report_dead(faults: Faults, scheduled: Iterable[Scheduled]) -> None:
    """Report each schedule of a file that an earlier one always precedes.

    Of a schedule for several kernels, that may be so for some of them.
    """
    seen: _Seen = {}
    for _, of_item in groupby(scheduled, key=lambda each: id(each.item)):
        kernels = [*of_item]
        dead = _dead(kernels, seen)
        others = {other for _, other in dead}
        if sum(map(len, dead.values())) == len(kernels) and len(others) == 1:
            span = kernels[0].item.span
            faults.add(UnreachableSchedule(span=span, other=others.pop()))
            continue
        for (span, other), names in dead.items():
            named = enumerated(names)
            faults.add(UnreachableSchedule(span=span, other=other, kernels=named))


def _dead(
    kernels: Iterable[Scheduled], seen: _Seen
) -> dict[tuple[Span, Span], list[str]]:
    """Return the kernels of an item that it is dead for, by target and what precedes."""
    dead: dict[tuple[Span, Span], list[str]] = {}
    for each in kernels:
        before = [seen[key] for key in _that_precede(each) if key in seen]
        if before:
            _, first = min(before, key=lambda found: found[0])
            spans = each.target.span, _other(each, first)
            dead.setdefault(spans, []).append(each.kernel)
        else:
            place = each.kernel, each.target.stage, each.item.guard
            seen[place, _way(each.item)] = len(seen), each
    return dead


def _other(each: Scheduled, first: Scheduled) -> Span:
    """Return where the earlier schedule is, within a list the earlier target."""
    return first.target.span if first.item is each.item else first.item.span


def _that_precede(each: Scheduled) -> Iterator[tuple[_Place, _Way]]:
    """Yield the schedules that are used wherever this one could be.

    A strategy may not fit a stage, or be over the adapter's limits; then the next one is
    tried.  `generic` always fits, and any other at least where its like does.
    """
    for stage in {None, each.target.stage}:
        for guard in {None, each.item.guard}:
            for way in {None, _way(each.item)}:
                yield (each.kernel, stage, guard), way


def _way(item: ast.ScheduleItem) -> _Way:
    if item.strategy.name == "generic":
        return None
    return item.strategy, item.options
