"""Schedules for kernels of other files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from kerngen.check.environment import Environment
from kerngen.check.faults.schedules import AmbiguousInGuard
from kerngen.check.files.checked_file import CheckedFile, KernelHead, UsedModule
from kerngen.check.schedules.matching import Scheduled
from kerngen.check.schedules.options import check_schedule
from kerngen.check.scope import Scope
from kerngen.check.traverse import names_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Schedule

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
                name=node.name,
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
