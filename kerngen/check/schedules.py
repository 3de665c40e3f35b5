"""Checking schedules: the kernels that they match, their options and guards.

`schedule softmax, matmul_n* when m == 1 { ... }` is one schedule for each of the kernels
softmax, matmul_nn and matmul_nt: the dims that its guard reads are those of the kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Final, TypeAlias, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.rules import GUARD
from kerngen.check.files.checked_file import CheckedFile, KernelHead, UsedModule
from kerngen.check.scope import Scope
from kerngen.check.traverse import names_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Expr, Kernel, Schedule
from kerngen.ir.strategies import OPTIONS, REPLACED, OptionRule
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.similar import closest, did_you_mean, enumerated
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.outline import is_pattern, matching

MOST_MATCHES: Final = 8192
"""The most kernels that the patterns of a file may match; to check so many takes 0.3 s.

Without a limit, each pattern is a schedule of every kernel: a file of 60 kilobytes, of
patterns and kernels, took 15 s.
"""

_MOST_SHOWN: Final = 8
"""The most kernels that a hint lists."""
_NO_KERNEL: Final = "This file has none; add 'use' for the file that has it."


@final
@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule for one of the kernels that it matches, and its faults for that kernel."""

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
        # Only patterns count for the limit: each plain name is one schedule.
        if is_pattern(name):
            kernels = [*matching(name, known)]
            matches += len(kernels)
        else:
            kernels = [name] if name in known else []
        if matches > MOST_MATCHES:
            span = target.kernel.span
            faults.add(
                diag.TooManyMatches(span=span, count=matches, limit=MOST_MATCHES)
            )
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
        return diag.NothingMatches(span=target.span, pattern=name, remedy=there)
    remedy = did_you_mean(closest(name, known)) or there
    return diag.UnknownKernel(span=target.span, remedy=remedy)


# Faults of one schedule in several kernels


def report_faults(faults: Faults, scheduled: Iterable[Scheduled]) -> None:
    """Report the faults of schedules; a fault that is the same for all kernels only once."""
    for _, of_item in groupby(scheduled, key=lambda each: id(each.item)):
        for fault in _joined([*of_item]):
            faults.add(fault)


def _joined(kernels: Sequence[Scheduled]) -> Iterator[Diagnostic]:
    """Yield the faults of one schedule, joined over its kernels.

    If a guard reads a name that only some kernels have, there is one fault with their names.
    """
    refused: dict[Span, dict[str, Diagnostic]] = {}
    seen: set[tuple[str, Span, str]] = set()
    for each in kernels:
        for fault in each.faults:
            if isinstance(
                fault, diag.UnknownName | diag.GuardReads | diag.IndexAsValue
            ):
                refused.setdefault(fault.span, {})[each.kernel] = fault
            elif (key := (fault.code, fault.span, fault.message)) not in seen:
                seen.add(key)
                yield fault
    # One fault for a name in a guard: of some kernels, or of all in the same way.
    number = len({each.kernel for each in kernels})
    for span, of_kernels in refused.items():
        names = enumerated([*of_kernels])
        first, *others = of_kernels.values()
        if len(of_kernels) < number or any(o.message != first.message for o in others):
            yield diag.GuardOfSome(span=span, kernels=names)
        elif isinstance(first, diag.UnknownName) and any(
            o.help != first.help for o in others
        ):
            remedy = f"None of {names} has a dim or integer scalar of that name."
            yield replace(first, remedy=remedy)
        else:
            yield first


_Place: TypeAlias = tuple[str, ast.Identifier | None, ast.Expr | None]
"""A kernel, a stage of it (None for all), and the guard of a schedule (None without one)."""

_Way: TypeAlias = tuple[ast.Identifier, tuple[ast.Option, ...]] | None
"""A strategy with its options; None for `generic`, which always fits."""

_Seen: TypeAlias = dict[tuple[_Place, _Way], tuple[int, Scheduled]]
"""The schedules so far, each with its number in the order of the text."""


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
            faults.add(diag.UnreachableSchedule(span=span, other=others.pop()))
            continue
        for (span, other), names in dead.items():
            named = enumerated(names)
            faults.add(diag.UnreachableSchedule(span=span, other=other, kernels=named))


def _dead(
    kernels: Iterable[Scheduled], seen: _Seen
) -> dict[tuple[Span, Span], list[str]]:
    """Return the kernels for which a schedule is dead, by its target and the earlier one."""
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
    """Yield the keys of schedules that, if they come earlier, are used wherever this could be.

    That is a schedule of the same kernel: of the stage or of all, with the same guard or
    none, with the same strategy and options or `generic`.  An earlier one with another
    strategy may not fit a stage, or exceed the adapter's limits; then this one is tried.
    """
    for stage in {None, each.target.stage}:
        for guard in {None, each.item.guard}:
            for way in {None, _way(each.item)}:
                yield (each.kernel, stage, guard), way


def _way(item: ast.ScheduleItem) -> _Way:
    if item.strategy.name == "generic":
        return None
    return item.strategy, item.options


def check_schedule(
    scheduled: Scheduled, env: Environment, scope: Scope
) -> Schedule | None:
    """Return the schedule of one kernel; `scope` is that of the kernel's parameters.

    Faults are kept in `scheduled`; `report_faults` joins those of all its kernels.
    """
    item, faults = scheduled.item, scheduled.faults
    env = replace(env, faults=faults)
    strategy = item.strategy
    options = None
    if strategy.name in OPTIONS:
        options = _check_options(faults, item)
    else:
        faults.add(
            diag.UnknownStrategy(
                span=strategy.span,
                known=tuple(OPTIONS),
                suggestion=closest(strategy.name, tuple(OPTIONS)),
            )
        )
    guard = None
    if item.guard is not None:
        guard = _check_guard(env, scope, item.guard)
        if guard is None:
            return None
    if options is None:
        return None
    stage = scheduled.target.stage
    asked = strategy.span.to(item.options[-1].span) if item.options else strategy.span
    name, span = (stage.name, stage.span) if stage else (None, None)
    return Schedule(name, guard, strategy.name, options, asked, span)


def _check_options(
    faults: Faults, item: ast.ScheduleItem
) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """Return a schedule's options with their values, or None after a fault."""
    strategy = item.strategy.name
    rules = OPTIONS[strategy]
    first: dict[str, Span] = {}
    before = len(faults)
    for option in item.options:
        name = option.name.name
        if name in first:
            faults.add(diag.RepeatedOption(span=option.name.span, other=first[name]))
        first.setdefault(name, option.name.span)
        if name in rules:
            _check_values(faults, option, rules[name])
        else:
            faults.add(
                diag.UnknownOption(
                    span=option.name.span,
                    strategy=strategy,
                    options=tuple(rules),
                    suggestion=closest(name, rules),
                    instead=REPLACED.get((strategy, name), ""),
                )
            )
    if len(faults) > before:
        return None
    return tuple((option.name.name, option.values) for option in item.options)


def _check_values(faults: Faults, option: ast.Option, rule: OptionRule) -> None:
    name = option.name.name
    if len(option.values) != rule.count:
        faults.add(
            diag.OptionCount(
                span=option.span,
                name=name,
                expected=rule.count,
                actual=len(option.values),
                usage=rule.usage,
            )
        )
        return
    highest = rule.highest or max(option.values)
    nearest = [min(max(value, rule.lowest), highest) for value in option.values]
    for value in option.values:
        too_high = rule.highest is not None and value > rule.highest
        if value < rule.lowest or too_high:
            faults.add(
                diag.OptionValue(
                    span=option.span,
                    name=name,
                    value=value,
                    accepted=rule.accepted,
                    usage=rule.usage,
                    nearest=f"{name}({', '.join(map(str, nearest))})",
                )
            )


# Guards


_LIKELY = {"adapter.workgroup_bytes": ">= 32768", "adapter.invocations": ">= 512"}
"""Likely comparisons of the adapter's properties that are numbers, for a hint."""


def _check_guard(env: Environment, scope: Scope, node: ast.Expr) -> Expr | None:
    value = Expressions(env, scope, GUARD).check(node)
    if value is None or value.type is Scalar.BOOL:
        return value
    example = f"{node.span.one_line()} {_LIKELY.get(node.span.text, '== 1')}"
    env.faults.add(diag.GuardType(span=node.span, example=example))
    return None


# Kernels of other files

CrossFileSchedules: TypeAlias = Mapping[tuple[str, str], tuple[Schedule, ...]]
"""Schedules by the name of the kernel's file, and the kernel's."""


def check_cross_file_schedules(
    scheduled: Iterable[Scheduled],
    own: Container[str],
    uses: tuple[UsedModule, ...],
    outer: Scope,
) -> CrossFileSchedules:
    """Return the schedules of other files' kernels; `own` are this file's kernels.

    `outer` has the constants that the file of the schedules sees.
    """
    given: dict[tuple[str, str], tuple[Schedule, ...]] = {}
    for each in scheduled:
        name = each.kernel
        if name in own:
            continue
        home = next(use.file for use in uses if name in use.file.kernels)
        schedule = _check(each, home.kernels[name], outer)
        if schedule is not None:
            key = home.name, name
            given[key] = (*given.get(key, ()), schedule)
    return given


def _check(scheduled: Scheduled, head: KernelHead, outer: Scope) -> Schedule | None:
    ambiguous = list(_ambiguous(scheduled, head, outer))
    for fault in ambiguous:
        scheduled.faults.add(fault)
    if ambiguous:
        return None
    env = Environment(scheduled.faults, {})
    return check_schedule(scheduled, env, head.scope.over(outer))


def _ambiguous(
    scheduled: Scheduled, head: KernelHead, outer: Scope
) -> Iterator[diag.AmbiguousInGuard]:
    """Yield the names in a guard that the kernel's file and this one both give a meaning."""
    guard = scheduled.item.guard
    for node in names_in(guard) if guard else ():
        if node.name not in head.scope.own_names():
            continue
        value, constant = head.scope.get(node.name), outer.get(node.name)
        if value is not None and constant is not None:
            yield diag.AmbiguousInGuard(
                span=node.span,
                kind=value.kind,
                kernel=scheduled.kernel,
                value=value.span,
                constant=constant.span,
            )


def with_cross_file_schedules(
    module: Module, givers: tuple[CheckedFile, ...]
) -> Module:
    """Return a module with other files' schedules for its kernels, which come first."""

    def scheduled(kernel: Kernel) -> Kernel:
        key = module.path, kernel.name
        given = (s for giver in givers for s in giver.schedules.get(key, ()))
        return replace(kernel, schedules=(*given, *kernel.schedules))

    return replace(module, kernels=tuple(map(scheduled, module.kernels)))
