"""A file without faults: its typed module, and the items that other files may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from kerngen.check import faults as diag
from kerngen.check.environment import Signature, Signatures
from kerngen.check.model import Model
from kerngen.check.scope import Scope, ValueSymbol
from kerngen.ir.memory import Struct
from kerngen.ir.module import Module
from kerngen.ir.nodes import Function, Schedule
from kerngen.source.diagnostic import Faults
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

    `module` has only the file's own functions; `kerngen.check.files.linking` adds those
    of others. `functions`, `constants`, `structs` and `kernels` are what importing
    files may use. `derived_from` are the files whose functions a derived kernel calls
    by that file's names. `schedules` are those for kernels of other files, by file and
    kernel. `model` has the types and meanings of all expressions.
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
"""The place of each item of a file, by its kind and name."""


def bring_in(
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
