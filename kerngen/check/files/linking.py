"""Linking: a module with all functions that its kernels call, from any file.

A file sees its own functions and constants, and those of the files that it uses itself.
What these call in their turn it does not see, but its module needs that too: such items
come along, under another name where theirs is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TypeAlias, final

from kerngen.check.files.checked_file import CheckedFile
from kerngen.ir.module import Module
from kerngen.ir.nodes import ConstRef, Expr, Function, FunctionCall, Kernel
from kerngen.ir.walk import map_children
from kerngen.source.order import needed_first

_Items: TypeAlias = Callable[[CheckedFile], Iterable[str]]
"""The functions or the constants of a file, by name."""


def link(file: CheckedFile) -> Module:
    """Return a file's module with all functions that its kernels call."""
    called, read = _names(file)
    functions = (
        _renamed(function, other, called, read)
        for other in needed_by(file)
        for function in other.functions.values()
    )

    homes = {home.name: home for home in file.derived_from.values()}

    def here(kernel: Kernel) -> Kernel:
        home = file.derived_from.get(kernel.name)
        return _moved(kernel, _names(home), (called, read)) if home else kernel

    return replace(
        file.module,
        functions=(*functions, *file.module.functions),
        kernels=tuple(map(here, file.module.kernels)),
        imported=frozenset(read.given.values()),
        origins=tuple(link(home) for home in homes.values()),
    )


def needed_by(file: CheckedFile) -> tuple[CheckedFile, ...]:
    """Return all other files that a file needs, each after those that it uses itself."""
    files: dict[str, CheckedFile] = {}

    def used_by(name: str) -> Iterator[str]:
        for use in files.get(name, file).uses:
            yield files.setdefault(use.file.name, use.file).name

    (*others, _), _ = needed_first((file.name,), used_by)
    return tuple(files[name] for name in others)


def _names(file: CheckedFile) -> tuple[_Names, _Names]:
    """Return the names that a file uses for functions and constants."""
    direct = tuple(use.file for use in file.uses)
    others = needed_by(file)
    called = _Names(lambda each: each.functions, file, direct, others)
    read = _Names(lambda each: each.constants, file, direct, others)
    return called, read


def _renamer(
    function: Callable[[str], str], constant: Callable[[str], str]
) -> Callable[[Expr], Expr]:
    """Return a function that renames the functions and constants of an expression."""

    def rename(expr: Expr) -> Expr:
        match map_children(expr, rename):
            case FunctionCall(function=name) as call:
                return replace(call, function=function(name))
            case ConstRef(name=name) as known:
                return replace(known, name=constant(name))
            case other:
                return other

    return rename


def _moved(
    kernel: Kernel, there: tuple[_Names, _Names], here: tuple[_Names, _Names]
) -> Kernel:
    """Return a kernel that was derived in the names of one module in those of another."""
    rename = _renamer(
        lambda name: here[0].given[there[0].home(name)],
        lambda name: here[1].given[there[1].home(name)],
    )
    return replace(
        kernel,
        body=tuple(replace(s, value=rename(s.value)) for s in kernel.body),
        hosts=tuple(replace(h, value=rename(h.value)) for h in kernel.hosts),
        derived=tuple(replace(d, value=rename(d.value)) for d in kernel.derived),
    )


@final
class _Names:
    """The names of other files' functions, or constants, in one module.

    `given` maps a file's name and that of its item to the name in the module.
    """

    def __init__(
        self,
        items: _Items,
        own: CheckedFile,
        direct: tuple[CheckedFile, ...],
        files: tuple[CheckedFile, ...],
    ) -> None:
        self._items = items
        self._own = own
        self.given = {
            (file.name, name): name for file in direct for name in items(file)
        }
        taken = {*items(own), *self.given.values()}
        for file in files:
            for name in items(file):
                if (file.name, name) not in self.given:
                    free = _free(name, file, taken)
                    self.given[file.name, name] = free
                    taken.add(free)

    def of(self, name: str, file: CheckedFile) -> str:
        """Return this module's name for the item that `file` knows by `name`."""
        reach = (file, *(use.file for use in file.uses))
        home = next(each for each in reach if name in self._items(each))
        return self.given[home.name, name]

    def home(self, name: str) -> tuple[str, str]:
        """Return the file of an item that the module calls so, and its name there."""
        homes = {named: home for home, named in self.given.items()}
        return homes.get(name, (self._own.name, name))


def _free(name: str, file: CheckedFile, taken: set[str]) -> str:
    """Return the name, with that of its file if it has to be another."""
    if name not in taken:
        return name
    stem = re.sub(r"[^A-Za-z0-9]+", "_", PurePosixPath(file.name).stem).strip("_")
    free = f"{name}_{stem}"
    while free in taken:
        free += "_"
    return free


def _renamed(
    function: Function, file: CheckedFile, called: _Names, read: _Names
) -> Function:
    """Return a function of `file` in the names of the module."""
    rename = _renamer(
        lambda name: called.of(name, file), lambda name: read.of(name, file)
    )
    return replace(
        function,
        name=called.of(function.name, file),
        lets=tuple((local, rename(value)) for local, value in function.lets),
        body=rename(function.body),
        partials=tuple(name and called.of(name, file) for name in function.partials),
    )
