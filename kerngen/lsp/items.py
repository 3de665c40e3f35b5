"""The items that a file sees: its own, and those of used files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from kerngen.source.text import Span
from kerngen.syntax import ast

Kind: TypeAlias = Literal["function", "constant", "struct", "kernel"]
Named: TypeAlias = (
    ast.FunctionItem
    | ast.ConstItem
    | ast.StructItem
    | ast.KernelItem
    | ast.GradientItem
)

_KINDS: Final[Mapping[type[ast.Item], Kind]] = {
    ast.FunctionItem: "function",
    ast.ConstItem: "constant",
    ast.StructItem: "struct",
    ast.KernelItem: "kernel",
    ast.GradientItem: "kernel",
}
"""The name space of each kind of item."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An item, with its file."""

    kind: Kind
    node: Named
    file: FileItems

    @property
    def span(self) -> Span:
        """The span of the item's name."""
        return self.node.name.span


@final
@dataclass(frozen=True, eq=False)
class FileItems:
    """The items that a file sees, by kind and name."""

    own: Mapping[tuple[Kind, str], Item]
    uses: tuple[FileItems, ...]

    @staticmethod
    def of(program: ast.Program, uses: tuple[FileItems, ...]) -> FileItems:
        """Return the items of a program; if a name repeats, the first."""
        own: dict[tuple[Kind, str], Item] = {}
        file = FileItems(own, uses)
        for node in program.items:
            if isinstance(node, Named):
                kind = _KINDS[type(node)]
                own.setdefault((kind, node.name.name), Item(kind, node, file))
        return file

    def get(self, kind: Kind, name: str) -> Item | None:
        """Return the item with a name; the file's own comes first."""
        for file in (self, *self.uses):
            if (kind, name) in file.own:
                return file.own[kind, name]
        return None

    def all(self, kind: Kind) -> Iterator[Item]:
        """Yield the items of a kind, the file's own first."""
        for file in (self, *self.uses):
            yield from (item for item in file.own.values() if item.kind == kind)
