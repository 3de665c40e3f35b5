"""A file without faults: its typed module, what importing files may use, and linking.

A file sees its own functions and constants, and those of the files that it uses itself.
It does not see the functions that these call in other files, but its module needs them, too:
they are linked in, under another name if their own is taken.

    a.kern uses b.kern, b.kern uses c.kern      `f` of c is linked into a's module as `f`,
                                                or as `f_c` if a or b has another `f`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, final

from kerngen.check import faults as diag
from kerngen.check.environment import Signature, Signatures
from kerngen.check.model import Model
from kerngen.check.scope import Scope, ValueSymbol
from kerngen.ir.memory import Struct
from kerngen.ir.module import Module
from kerngen.ir.nodes import ConstRef, Expr, Function, FunctionCall, Kernel, Schedule
from kerngen.ir.walk import map_children
from kerngen.source.diagnostic import Faults
from kerngen.source.order import needed_first
from kerngen.source.text import Span

ItemKind: TypeAlias = Literal["function", "constant", "struct", "kernel"]


@final
@dataclass(frozen=True, slots=True)
class KernelHead:
    """The parameters and hosts of a kernel, for schedules in other files."""

    scope: Scope
    span: Span


@final
@dataclass(frozen=True, slots=True)
class UsedModule:
    """A used file, and the span of the `use` that names it."""

    file: CheckedFile
    span: Span

    @property
    def path(self) -> str:
        """The file's path as the user wrote it."""
        return self.span.text.strip('"')


@final
@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file without faults.

    - `module`: has only the file's own functions; `link` adds those of others
    - `functions`, `constants`, `structs`, `kernels`: what importing files may use
    - `derived_from`: by derived kernel, the file whose kernel it is the gradient of, if that
      is another file; the kernel calls functions by that file's names
    - `schedules`: schedules for kernels of other files, by file and kernel
    - `model`: the types and meanings of all expressions
    """

    module: Module
    functions: Mapping[str, Function]
    signatures: Mapping[str, Signature]
    constants: Mapping[str, ValueSymbol]
    structs: Mapping[str, Struct]
    kernels: Mapping[str, KernelHead]
    uses: tuple[UsedModule, ...]
    derived_from: Mapping[str, CheckedFile]
    schedules: Mapping[tuple[str, str], tuple[Schedule, ...]]
    model: Model

    @property
    def name(self) -> str:
        """The file's name in diagnostics and output, the same on every machine."""
        return self.module.path

    def items(self) -> Iterator[tuple[ItemKind, str, Span]]:
        """Yield the items that importing files see: kind, name and span."""
        for name, signature in self.signatures.items():
            yield "function", name, signature.span
        for name, constant in self.constants.items():
            yield "constant", name, constant.span
        for name, struct in self.structs.items():
            assert struct.span is not None, "a struct of a file has its place"
            yield "struct", name, struct.span
        for name, kernel in self.kernels.items():
            yield "kernel", name, kernel.span


OwnItems: TypeAlias = Mapping[tuple[ItemKind, str], Span]
"""The span of each item's name in a file, by the item's kind and name."""


def import_items(
    faults: Faults, own: OwnItems, uses: Iterable[UsedModule], outer: Scope
) -> Signatures:
    """Declare used files' constants in `outer`; return their functions' signatures.

    A name that is imported twice is reported; an item of the file itself has priority.
    """
    functions: Signatures = {}
    seen: dict[tuple[ItemKind, str], tuple[UsedModule, Span]] = {}
    for use in uses:
        functions |= use.file.signatures
        for kind, name, span in use.file.items():
            first, other = seen.setdefault((kind, name), (use, span))
            if (kind, name) in own:
                faults.add(
                    diag.ClashWithUsedFile(
                        span=own[kind, name],
                        kind=kind,
                        path=use.path,
                        theirs=span,
                        use=use.span,
                    )
                )
            elif first is not use:
                faults.add(
                    diag.UsedFilesClash(
                        span=use.span,
                        kind=kind,
                        name=name,
                        first=first.path,
                        path=use.path,
                        use=first.span,
                        one=other,
                        other=span,
                    )
                )
            elif kind == "constant":
                outer.put(name, use.file.constants[name])
    return functions


def structs_of(uses: Iterable[UsedModule]) -> dict[str, Struct]:
    """Return the structs of other files."""
    return {n: struct for use in uses for n, struct in use.file.structs.items()}


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

    # A gradient of another file's kernel has that file's names, and gets this module's.
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
    """Return a kernel that uses the names of one module, with those of another module."""
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
        """Return the file of an item by its name in the module, and its name in that file."""
        homes = {named: home for home, named in self.given.items()}
        return homes.get(name, (self._own.name, name))


def _free(name: str, file: CheckedFile, taken: set[str]) -> str:
    """Return a name, or if it is taken the name with the file's appended: `f_linear`."""
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
    """Return a function of `file` that uses the names of the module."""
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
