"""The Python names of sources and items, where they differ from the user's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Protocol

from kerngen.emit.python_names import module_names
from kerngen.ir.module import Module


class NamedFile(Protocol):
    """A source: its name, its path as the user knows it, and its Python module."""

    @property
    def name(self) -> str:
        """The source's name in its library."""
        ...

    @property
    def shown(self) -> str:
        """The source's name in messages."""
        ...

    @property
    def folder(self) -> PurePosixPath:
        """The folder of its module in the output."""
        ...

    @property
    def module(self) -> str:
        """The name of its Python module."""
        ...

    @property
    def is_renamed(self) -> bool:
        """Whether the module's name differs from the file's."""
        ...


def renamed_items(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the kernels and structs whose Python names differ, with these names."""
    names = module_names(module)
    for kernel in module.kernels:
        if (function := names.kernels[kernel.name].function) != kernel.name:
            yield f"kernel '{kernel.name}'", function
    for struct in module.structs:
        if (called := names.structs[struct]) != struct.name:
            yield f"struct '{struct.name}'", called


def rename_notes(file: NamedFile, items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield sentences about a source's names in Python that differ."""
    if file.is_renamed:
        yield f"in Python, {file.shown} is the module '{file.module}'"
    for what, name in items:
        yield f"in Python, {what} of {file.shown} is '{name}'"
