"""Schedules that a file gives to the kernels of files that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from kerngen.check.checked import CheckedFile, KernelHead, UsedModule
from kerngen.check.environment import Environment
from kerngen.check.faults_schedules import AmbiguousInGuard, UnknownKernel
from kerngen.check.schedules import check_schedule
from kerngen.check.scope import Scope
from kerngen.check.traverse import walk_syntax
from kerngen.ir.nodes import Kernel, Module, Schedule
from kerngen.source.diagnostic import Faults
from kerngen.source.similar import closest, did_you_mean
from kerngen.syntax import ast

_MOST_SHOWN: Final = 8
_NO_KERNEL: Final = "This file has none; add 'use' for the file that has it."

Given: TypeAlias = Mapping[tuple[str, str], tuple[Schedule, ...]]
"""Schedules by the name of the kernel's file, and the kernel's."""


def check_given(
    faults: Faults,
    items: Iterable[ast.ScheduleItem],
    own: list[str],
    uses: tuple[UsedModule, ...],
    outer: Scope,
) -> Given:
    """Return the schedules of other files' kernels; `own` are this file's kernels.

    `outer` holds the constants that the schedules' file sees.
    """
    given: dict[tuple[str, str], tuple[Schedule, ...]] = {}
    for item in items:
        name = item.kernel.name
        if name in own:
            continue
        homes = [use.file for use in uses if name in use.file.kernels]
        if not homes:
            _report_unknown(faults, item.kernel, own, uses)
            continue
        schedule = _check(faults, item, homes[0].kernels[name], outer)
        if schedule is not None:
            key = homes[0].name, name
            given[key] = (*given.get(key, ()), schedule)
    return given


def _report_unknown(
    faults: Faults, name: ast.Identifier, own: list[str], uses: Iterable[UsedModule]
) -> None:
    known = [*own, *(kernel for use in uses for kernel in use.file.kernels)]
    listed = ", ".join(f"'{kernel}'" for kernel in known[:_MOST_SHOWN])
    there = f"The known kernels are {listed}." if listed else _NO_KERNEL
    faults.add(
        UnknownKernel(
            span=name.span,
            name=name.name,
            remedy=did_you_mean(closest(name.name, known)) or there,
        )
    )


def _check(
    faults: Faults, item: ast.ScheduleItem, head: KernelHead, outer: Scope
) -> Schedule | None:
    ambiguous = list(_ambiguous(item, head, outer))
    for fault in ambiguous:
        faults.add(fault)
    if ambiguous:
        return None
    return check_schedule(
        item, Environment(faults, {}, "kernel"), head.scope.over(outer)
    )


def _ambiguous(
    item: ast.ScheduleItem, head: KernelHead, outer: Scope
) -> Iterator[AmbiguousInGuard]:
    """Yield the names in a guard that mean one thing there and another one here."""
    for node in walk_syntax(item.guard) if item.guard else ():
        if not isinstance(node, ast.Name) or node.name not in head.scope.own_names():
            continue
        value, constant = head.scope.get(node.name), outer.get(node.name)
        if value is not None and constant is not None:
            yield AmbiguousInGuard(
                span=node.span,
                name=node.name,
                kind=value.kind,
                kernel=item.kernel.name,
                value=value.span,
                constant=constant.span,
            )


def with_given(module: Module, givers: tuple[CheckedFile, ...]) -> Module:
    """Return a module with the schedules that other files give to its kernels first."""

    def scheduled(kernel: Kernel) -> Kernel:
        key = module.path, kernel.name
        given = (s for giver in givers for s in giver.schedules.get(key, ()))
        return replace(kernel, schedules=(*given, *kernel.schedules))

    return replace(module, kernels=tuple(map(scheduled, module.kernels)))
