"""The functions of several files in one module.

A file sees its own functions and constants, and those of the files that it uses itself.
What these call in their turn it does not see, but its module needs that too: such items
come along, under another name where theirs is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TypeAlias, final

from kerngen.check.checked import CheckedFile
from kerngen.ir.nodes import ConstRef, Expr, Function, FunctionCall, Module
from kerngen.ir.walk import map_children

_Items: TypeAlias = Callable[[CheckedFile], Iterable[str]]
"""The functions or the constants of a file, by name."""


def link(file: CheckedFile, others: tuple[CheckedFile, ...]) -> Module:
    """Return a file's module with all that its kernels call, wherever that stands.

    `others` are all files that it needs, each after those that it uses itself.
    """
    direct = tuple(use.file for use in file.uses)
    called = _Names(lambda each: each.functions, file.signatures, direct, others)
    read = _Names(lambda each: each.constants, file.constants, direct, others)
    functions = (
        _renamed(function, other, called, read)
        for other in others
        for function in other.functions.values()
    )
    return replace(
        file.module,
        functions=(*functions, *file.module.functions),
        imported=frozenset(read.given.values()),
    )


@final
class _Names:
    """What the functions, or the constants, of other files are called in one module.

    `given` maps a file's name and that of its item to the name in the module.
    """

    def __init__(
        self,
        items: _Items,
        own: Iterable[str],
        direct: tuple[CheckedFile, ...],
        files: tuple[CheckedFile, ...],
    ) -> None:
        self._items = items
        self.given = {
            (file.name, name): name for file in direct for name in items(file)
        }
        taken = {*own, *self.given.values()}
        for file in files:
            for name in items(file):
                if (file.name, name) not in self.given:
                    free = _free(name, file, taken)
                    self.given[file.name, name] = free
                    taken.add(free)

    def of(self, name: str, file: CheckedFile) -> str:
        """Return what the item is called here that `file` calls by a name."""
        reach = (file, *(use.file for use in file.uses))
        home = next(each for each in reach if name in self._items(each))
        return self.given[home.name, name]


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

    def rename(expr: Expr) -> Expr:
        match map_children(expr, rename):
            case FunctionCall(function=name) as call:
                return replace(call, function=called.of(name, file))
            case ConstRef(name=name) as constant:
                return replace(constant, name=read.of(name, file))
            case other:
                return other

    return replace(
        function,
        name=called.of(function.name, file),
        lets=tuple((local, rename(value)) for local, value in function.lets),
        body=rename(function.body),
    )
