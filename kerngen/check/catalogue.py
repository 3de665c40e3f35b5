"""Every diagnostic that a wrong program can get, by its code."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from kerngen.check import (
    faults_indices,
    faults_names,
    faults_schedules,
    faults_statements,
    faults_types,
    faults_unsupported,
)
from kerngen.source import reading
from kerngen.source.diagnostic import Diagnostic
from kerngen.syntax import faults as faults_syntax

_MODULES = (
    reading,
    faults_syntax,
    faults_names,
    faults_types,
    faults_indices,
    faults_statements,
    faults_schedules,
    faults_unsupported,
)


def _diagnostics_of(module: ModuleType) -> Iterator[type[Diagnostic]]:
    for value in vars(module).values():
        is_class = isinstance(value, type) and issubclass(value, Diagnostic)
        if is_class and value.__module__ == module.__name__:
            yield value


def _all() -> Iterator[type[Diagnostic]]:
    for module in _MODULES:
        yield from sorted(_diagnostics_of(module), key=lambda d: d.code)


DIAGNOSTICS: tuple[type[Diagnostic], ...] = tuple(_all())
"""Every class of diagnostic, in the order of the codes."""
