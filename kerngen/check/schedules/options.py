"""Checking schedules: strategies, options and guards, for kernels of any file."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.host_rules import GUARD
from kerngen.check.faults.schedules import (
    AmbiguousInGuard,
    GuardType,
    OptionCount,
    OptionValue,
    RepeatedOption,
    UnknownOption,
    UnknownStrategy,
)
from kerngen.check.files.checked_file import CheckedFile, KernelHead, UsedModule
from kerngen.check.schedules.matching import Scheduled
from kerngen.check.scope import Scope
from kerngen.check.traverse import names_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Expr, Kernel, Schedule
from kerngen.ir.strategies import OPTIONS, REPLACED, OptionRule
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import Faults
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast


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
            UnknownStrategy(
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
    strategy = item.strategy.name
    rules = OPTIONS[strategy]
    first: dict[str, Span] = {}
    before = len(faults)
    for option in item.options:
        name = option.name.name
        if name in first:
            faults.add(RepeatedOption(span=option.name.span, other=first[name]))
        first.setdefault(name, option.name.span)
        if name in rules:
            _check_values(faults, option, rules[name])
        else:
            faults.add(
                UnknownOption(
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
            OptionCount(
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
                OptionValue(
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
"""What the facts that are numbers are compared with."""


def _check_guard(env: Environment, scope: Scope, node: ast.Expr) -> Expr | None:
    value = Expressions(env, scope, GUARD).check(node)
    if value is None or value.type is Scalar.BOOL:
        return value
    example = f"{node.span.one_line()} {_LIKELY.get(node.span.text, '== 1')}"
    env.faults.add(GuardType(span=node.span, example=example))
    return None


# Kernels of other files

Given: TypeAlias = Mapping[tuple[str, str], tuple[Schedule, ...]]
"""Schedules by the name of the kernel's file, and the kernel's."""


def check_given(
    scheduled: Iterable[Scheduled],
    own: Container[str],
    uses: tuple[UsedModule, ...],
    outer: Scope,
) -> Given:
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
) -> Iterator[AmbiguousInGuard]:
    """Yield the names in a guard that mean one thing there and another one here."""
    guard = scheduled.item.guard
    for node in names_in(guard) if guard else ():
        if node.name not in head.scope.own_names():
            continue
        value, constant = head.scope.get(node.name), outer.get(node.name)
        if value is not None and constant is not None:
            yield AmbiguousInGuard(
                span=node.span,
                kind=value.kind,
                kernel=scheduled.kernel,
                value=value.span,
                constant=constant.span,
            )


def with_given(module: Module, givers: tuple[CheckedFile, ...]) -> Module:
    """Return a module with other files' schedules for its kernels, which come first."""

    def scheduled(kernel: Kernel) -> Kernel:
        key = module.path, kernel.name
        given = (s for giver in givers for s in giver.schedules.get(key, ()))
        return replace(kernel, schedules=(*given, *kernel.schedules))

    return replace(module, kernels=tuple(map(scheduled, module.kernels)))
