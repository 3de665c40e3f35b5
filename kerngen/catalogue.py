"""The catalogue of diagnostics: every class by its code."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from kerngen.bind import faults as of_wgsl
from kerngen.check.faults import (
    indices,
    names,
    schedules,
    statements,
    structs,
    types,
)
from kerngen.gradient import faults as of_gradients
from kerngen.schedule import faults as of_stages
from kerngen.source import faults_build, reading
from kerngen.source.diagnostic import Diagnostic
from kerngen.syntax import faults as of_syntax
from kerngen.syntax import faults_uses

_MODULES = (
    *(reading, faults_build, faults_uses, of_syntax),
    *(names, types, indices, statements, schedules),
    *(structs, of_gradients, of_stages, of_wgsl),
)


def _diagnostics_of(module: ModuleType) -> Iterator[type[Diagnostic]]:
    for value in vars(module).values():
        is_class = isinstance(value, type) and issubclass(value, Diagnostic)
        if is_class and value.__module__ == module.__name__:
            yield value


DIAGNOSTICS: tuple[type[Diagnostic], ...] = tuple(
    sorted(
        (found for module in _MODULES for found in _diagnostics_of(module)),
        key=lambda diagnostic: diagnostic.CODE,
    )
)
"""Every class of diagnostic, in the order of the codes."""
