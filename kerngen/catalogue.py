"""Every diagnostic that a wrong program can get, by its code."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from kerngen.check import (
    faults_gradients,
    faults_indices,
    faults_names,
    faults_places,
    faults_recurrences,
    faults_requires,
    faults_schedules,
    faults_statements,
    faults_structs,
    faults_types,
)
from kerngen.gradient import faults as faults_derivation
from kerngen.schedule import faults as faults_lowering
from kerngen.source import faults_build, reading
from kerngen.source.diagnostic import Diagnostic
from kerngen.syntax import faults as faults_syntax
from kerngen.syntax import faults_foreign, faults_uses

_MODULES = (
    reading,
    faults_build,
    faults_uses,
    faults_syntax,
    faults_foreign,
    faults_names,
    faults_places,
    faults_types,
    faults_indices,
    faults_statements,
    faults_recurrences,
    faults_schedules,
    faults_requires,
    faults_structs,
    faults_gradients,
    faults_derivation,
    faults_lowering,
)


def _diagnostics_of(module: ModuleType) -> Iterator[type[Diagnostic]]:
    for value in vars(module).values():
        is_class = isinstance(value, type) and issubclass(value, Diagnostic)
        if is_class and value.__module__ == module.__name__:
            yield value


DIAGNOSTICS: tuple[type[Diagnostic], ...] = tuple(
    sorted(
        (found for module in _MODULES for found in _diagnostics_of(module)),
        key=lambda diagnostic: diagnostic.code,
    )
)
"""Every class of diagnostic, in the order of the codes."""
