"""The names that come into a file with the files that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kerngen.check.environment import Signatures
from kerngen.check.faults.names import ClashWithUsedFile, UsedFilesClash
from kerngen.check.files.checked_file import ItemKind, UsedModule
from kerngen.check.scope import Scope
from kerngen.ir.memory import Struct
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.text import Span

OwnItems: TypeAlias = Mapping[tuple[ItemKind, str], Span]
"""The place of each item of a file, by its kind and name."""


def bring_in(
    faults: Faults, own: OwnItems, uses: Iterable[UsedModule], outer: Scope
) -> Signatures:
    """Put constants of other files into `outer`; return the functions.

    A name with two meanings of one kind is a fault; a file's own item stays.
    """
    functions: Signatures = {}
    seen: dict[tuple[ItemKind, str], tuple[UsedModule, Span]] = {}
    for use in uses:
        functions |= use.file.signatures
        for kind, name, span in use.file.items():
            first, other = seen.setdefault((kind, name), (use, span))
            if (kind, name) in own:
                faults.add(_clash_with_own(own[kind, name], kind, name, use, span))
            elif first is not use:
                faults.add(_clash(kind, name, (first, use), (other, span)))
            elif kind == "constant":
                outer.put(name, use.file.constants[name])
    return functions


def structs_of(uses: Iterable[UsedModule]) -> dict[str, Struct]:
    """Return the structs of other files."""
    return {n: struct for use in uses for n, struct in use.file.structs.items()}


def _clash_with_own(
    own: Span, kind: ItemKind, name: str, use: UsedModule, theirs: Span
) -> Diagnostic:
    return ClashWithUsedFile(
        span=own, kind=kind, name=name, path=use.path, theirs=theirs, use=use.span
    )


def _clash(
    kind: ItemKind,
    name: str,
    uses: tuple[UsedModule, UsedModule],
    items: tuple[Span, Span],
) -> Diagnostic:
    first, second = uses
    return UsedFilesClash(
        span=second.span,
        kind=kind,
        name=name,
        first=first.path,
        path=second.path,
        use=first.span,
        one=items[0],
        other=items[1],
    )
