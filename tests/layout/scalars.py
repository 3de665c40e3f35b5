"""Every scalar of what is laid out: where it lies, and how a shader reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from kerngen.ir.memory import Leaf
from kerngen.ir.types import Matrix, Scalar, Storage, Vector
from kerngen.layout.rules import leaf_footprint
from kerngen.layout.types import (
    ArrayLayout,
    ColumnsLayout,
    Laid,
    LeafLayout,
    StructLayout,
)
from kerngen.shader.structs import members_of


@dataclass(frozen=True)
class Place:
    """A scalar: its offset by our layout, and the shader's expression for it."""

    offset: int
    storage: Storage
    expression: str
    in_word: bool = False

    @property
    def end(self) -> int:
        """The offset of the first byte behind it."""
        return self.offset + self.storage.size

    @property
    def is_half(self) -> bool:
        """Whether the expression is an f16; else it is a word, or the half of one."""
        return self.storage is Storage.F16 and not self.in_word


def places(laid: Laid, at: int, expression: str, index: str) -> Iterator[Place]:
    """Yield every scalar; `index` is a format of the subscript of an array."""
    match laid:
        case LeafLayout(leaf=leaf):
            yield from _leaf(leaf, at, expression, index)
        case ArrayLayout(element=LeafLayout(leaf=leaf)) if laid.in_words:
            for number in range(laid.length):
                one = f"{expression}[{index.format(number)}]"
                yield from _in_words(leaf, at + number * laid.stride, one)
        case ArrayLayout(element=element, stride=stride, length=length, part=part):
            for number in range(length):
                one = f"{expression}[{index.format(number)}]" + (part and f".{part}")
                yield from places(element, at + number * stride, one, index)
        case ColumnsLayout(columns=columns):
            yield from places(columns, at, expression, index)
        case StructLayout(fields=fields):
            names = members_of(laid)
            for field in fields:
                one = f"{expression}.{names[field.name]}"
                yield from places(field.laid, at + field.offset, one, index)
        case _:
            assert_never(laid)


def _in_words(leaf: Leaf, at: int, expression: str) -> Iterator[Place]:
    """Yield each f16 of a vector by its half of a word."""
    width = leaf.type.width if isinstance(leaf.type, Vector) else 1
    for n in range(width):
        shift = 16 * (n % 2)
        half = f"(({expression}.{'xy'[n // 2]} >> {shift}u) & 0xffffu)"
        yield Place(at + 2 * n, Storage.F16, half, in_word=True)


def _leaf(leaf: Leaf, at: int, expression: str, index: str) -> Iterator[Place]:
    unit = leaf.storage.size
    match leaf.type:
        case Scalar():
            yield Place(at, leaf.storage, expression)
        case Vector(width=width):
            for number, name in enumerate("xyzw"[:width]):
                one = f"{expression}.{name}"
                yield Place(at + number * unit, leaf.storage, one)
        case Matrix(columns=columns, column=column):
            stride = leaf_footprint(leaf).size // columns
            for number in range(columns):
                one = f"{expression}[{index.format(number)}]"
                half = Leaf(column, leaf.is_half)
                yield from _leaf(half, at + number * stride, one, index)
        case _:
            assert_never(leaf.type)
