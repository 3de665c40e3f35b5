"""Matching schedules with kernels, by names and patterns.

schedule softmax, matmul_n* when m == 1 { ... }    softmax, matmul_nn, matmul_nt
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Final, TypeAlias, final

from kerngen.check.faults.indices import IndexAsValue
from kerngen.check.faults.names import UnknownName
from kerngen.check.faults.schedules import (
    GuardOfSome,
    GuardReads,
    NothingMatches,
    TooManyMatches,
    UnknownKernel,
    UnreachableSchedule,
)
from kerngen.check.files.checked_file import UsedModule
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.similar import closest, did_you_mean, enumerated
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.patterns import is_pattern, matching

MOST_MATCHES: Final = 8192
"""So many kernels may match the patterns of a file, which takes 0.3 s to check.

Each pattern is worth as many schedules as there are kernels: 60 kilobytes of both took
15 s.
"""

_MOST_SHOWN: Final = 8
_NO_KERNEL: Final = "This file has none; add 'use' for the file that has it."


@final
@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule for one of its kernels, and its faults there."""

    kernel: str
    target: ast.ScheduleTarget
    item: ast.ScheduleItem
    faults: Faults = field(default_factory=Faults, compare=False, repr=False)


def find_scheduled(
    faults: Faults, program: ast.Program, own: Sequence[str], uses: Sequence[UsedModule]
) -> list[Scheduled]:
    """Return each pair of a schedule and a kernel, in the order of the text.

    `own` are the file's kernels. A target that matches no kernel is reported.
    """
    known = dict.fromkeys([*own, *(name for use in uses for name in use.file.kernels)])
    found: list[Scheduled] = []
    matches = 0
    items = (item for item in program.items if isinstance(item, ast.ScheduleItem))
    for item, target in ((each, target) for each in items for target in each.targets):
        name = target.kernel.name
        if is_pattern(name):
            kernels = [*matching(name, known)]
            matches += len(kernels)
        else:
            kernels = [name] if name in known else []
        if matches > MOST_MATCHES:
            span = target.kernel.span
            faults.add(TooManyMatches(span=span, count=matches, limit=MOST_MATCHES))
            break
        found += (Scheduled(kernel, target, item) for kernel in kernels)
        if not kernels:
            faults.add(_unknown(target.kernel, known))
    return found


def by_kernel(scheduled: Iterable[Scheduled]) -> Mapping[str, Sequence[Scheduled]]:
    """Return the schedules of each kernel."""
    found: defaultdict[str, list[Scheduled]] = defaultdict(list)
    for each in scheduled:
        found[each.kernel].append(each)
    return found


def _unknown(target: ast.Identifier, known: Collection[str]) -> Diagnostic:
    name = target.name
    listed = ", ".join(f"'{kernel}'" for kernel in islice(known, _MOST_SHOWN))
    there = f"The known kernels are {listed}." if listed else _NO_KERNEL
    if is_pattern(name):
        return NothingMatches(span=target.span, pattern=name, remedy=there)
    remedy = did_you_mean(closest(name, known)) or there
    return UnknownKernel(span=target.span, remedy=remedy)


# Faults of one schedule in several kernels


def report_faults(faults: Faults, scheduled: Iterable[Scheduled]) -> None:
    """Report the faults of schedules; one that is the same for all kernels, once."""
    for _, of_item in groupby(scheduled, key=lambda each: id(each.item)):
        for fault in _joined([*of_item]):
            faults.add(fault)


def _joined(kernels: Sequence[Scheduled]) -> Iterator[Diagnostic]:
    """Yield the faults of one schedule: of a name that only some can read, which they are."""
    refused: dict[Span, dict[str, Diagnostic]] = {}
    seen: set[tuple[str, Span, str]] = set()
    for each in kernels:
        for fault in each.faults:
            if isinstance(fault, UnknownName | GuardReads | IndexAsValue):
                refused.setdefault(fault.span, {})[each.kernel] = fault
            elif (key := (fault.code, fault.span, fault.message)) not in seen:
                seen.add(key)
                yield fault
    number = len({each.kernel for each in kernels})
    for span, of_kernels in refused.items():
        names = enumerated([*of_kernels])
        first, *others = of_kernels.values()
        if len(of_kernels) < number or any(o.message != first.message for o in others):
            yield GuardOfSome(span=span, kernels=names)
        elif isinstance(first, UnknownName) and any(
            o.help != first.help for o in others
        ):
            remedy = f"None of {names} has a dim or integer scalar of that name."
            yield replace(first, remedy=remedy)
        else:
            yield first


_Place: TypeAlias = tuple[str, ast.Identifier | None, ast.Expr | None]
"""A kernel, a stage of it or all, and what guards a schedule of that."""

_Way: TypeAlias = tuple[ast.Identifier, tuple[ast.Option, ...]] | None
"""A strategy with its options; None for the one that always fits."""

_Seen: TypeAlias = dict[tuple[_Place, _Way], tuple[int, Scheduled]]
"""What came before, with its number in the order of the text."""


def report_dead(faults: Faults, scheduled: Iterable[Scheduled]) -> None:
    """Report schedules of a file that are never chosen, as an earlier one always is.

    A schedule for several kernels may be dead for only some of them.
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
            # Within a list it is the earlier target.
            other = first.target if first.item is each.item else first.item
            spans = each.target.span, other.span
            dead.setdefault(spans, []).append(each.kernel)
        else:
            place = each.kernel, each.target.stage, each.item.guard
            seen[place, _way(each.item)] = len(seen), each
    return dead


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
