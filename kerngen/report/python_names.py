"""Names by which Python imports what a source becomes, where they differ from its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Protocol

from kerngen.emit.python_names import module_names
from kerngen.ir.module import Module


class NamedFile(Protocol):
    """A source: its name, how its user would find it, and what Python calls its module."""

    @property
    def name(self) -> str:
        """The name in its library."""
        ...

    @property
    def shown(self) -> str:
        """The name in messages."""
        ...

    @property
    def folder(self) -> PurePosixPath:
        """Where in the output its module belongs."""
        ...

    @property
    def module(self) -> str:
        """What Python calls its module."""
        ...

    @property
    def is_renamed(self) -> bool:
        """Whether Python can't call the module as the file is called."""
        ...


def renamed_items(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the kernels and structs that Python calls otherwise, and by which names."""
    names = module_names(module)
    for kernel in module.kernels:
        if (function := names.kernels[kernel.name].function) != kernel.name:
            yield f"kernel '{kernel.name}'", function
    for struct in module.structs:
        if (called := names.structs[struct]) != struct.name:
            yield f"struct '{struct.name}'", called


def rename_notes(file: NamedFile, items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield sentences about a source: what Python calls it, and items in it."""
    if file.is_renamed:
        yield f"in Python, {file.shown} is the module '{file.module}'"
    for what, name in items:
        yield f"in Python, {what} of {file.shown} is '{name}'"
