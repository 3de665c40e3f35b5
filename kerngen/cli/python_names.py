"""By which names Python imports what a source becomes, where they differ from its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kerngen.cli.project import SourceFile

if TYPE_CHECKING:
    from kerngen.ir.nodes import Module


def renamed_items(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the kernels and structs that Python calls otherwise, and by which names."""
    from kerngen.emit.python_names import module_names

    names = module_names(module)
    for kernel in module.kernels:
        if (function := names.kernels[kernel.name].function) != kernel.name:
            yield f"kernel '{kernel.name}'", function
    for struct in module.structs:
        if (called := names.structs[struct]) != struct.name:
            yield f"struct '{struct.name}'", called


def rename_notes(file: SourceFile, items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield sentences about a source: what Python calls it, and items in it."""
    if file.is_renamed:
        yield f"in Python, {file.shown} is the module '{file.module}'"
    for what, name in items:
        yield f"in Python, {what} of {file.shown} is '{name}'"
