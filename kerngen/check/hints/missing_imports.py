"""Hints for names that used files see, but that this file does not import."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from kerngen.check.faults.names import UnknownFunction, UnknownName, UnknownType
from kerngen.check.faults.schedules import NothingMatches, UnknownKernel
from kerngen.check.files.checked_file import CheckedFile, ItemKind, UsedModule
from kerngen.source.diagnostic import Diagnostic
from kerngen.syntax.patterns import matching

_IS_KERNEL: Final = (
    "'{name}' is a kernel, and only Python calls those; what kernels share is a 'fn'."
)


def say_where(
    name: str, uses: Iterable[UsedModule], kernels: Collection[str]
) -> Callable[[Diagnostic], Diagnostic]:
    """Return a function that adds to an unknown name's diagnostic where it is declared.

    `name` is the file with the diagnostic, `uses` are the files that it uses, and
    `kernels` are those that it sees.
    """
    unseen: dict[tuple[ItemKind, str], CheckedFile] = {}

    looked_into: set[str] = set()
    waiting = [use.file for use in reversed(tuple(uses))]
    while waiting:
        file = waiting.pop()
        if file.name in looked_into:
            continue
        looked_into.add(file.name)
        for use in file.uses:
            for kind, item, _ in use.file.items():
                unseen.setdefault((kind, item), use.file)
        waiting.extend(use.file for use in reversed(file.uses))

    def better(fault: Diagnostic) -> Diagnostic:
        match fault:
            case UnknownFunction(name=item) if item in kernels:
                return replace(fault, remedy=_IS_KERNEL.format(name=item))
            case UnknownFunction(name=item):
                file = unseen.get(("function", item))
            case UnknownName(name=item):
                file = unseen.get(("constant", item))
            case UnknownKernel(name=item):
                file = unseen.get(("kernel", item))
            case NothingMatches(pattern=pattern):
                kernels_unseen = (item for kind, item in unseen if kind == "kernel")
                item = next(matching(pattern, kernels_unseen), "")
                file = unseen.get(("kernel", item))
            case UnknownType(name=item):
                file = unseen.get(("struct", item))
            case _:
                return fault
        if file is None:
            return fault
        path = posixpath.relpath(file.name, posixpath.dirname(name) or ".")
        where = f"It is in '{path}': add 'use \"{path}\";'."
        return replace(fault, remedy=where)

    return better
