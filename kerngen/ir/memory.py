"""Memory types: those of tensor elements, struct fields and parameters.

Values have fewer types (`kerngen.ir.types`): an f16 in memory is read as an f32, and of
arrays and structs only the parts are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, assert_never, final

from kerngen.ir.types import (
    MATRICES,
    VECTORS,
    Matrix,
    Scalar,
    Storage,
    ValueType,
    scalar_of,
)
from kerngen.source.text import Span


@final
@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar, vector or matrix in memory: its value's `type`, and how it is stored.

    - `is_half`: whether each component is an f16
    - `narrow`: the type of an integer of 8 or 4 bits, several of which share a word
    - `wide`: the type of a 64-bit number; it is for `kerngen bind` alone, as no kernel reads it
    """

    type: ValueType
    is_half: bool = False
    narrow: Storage | None = None
    wide: Storage | None = None

    @property
    def storage(self) -> Storage:
        """The storage type of the scalar, or of each component."""
        if kept := self.narrow or self.wide:
            return kept
        return Storage.F16 if self.is_half else Storage(scalar_of(self.type).value)

    @property
    def spelling(self) -> str:
        """The type as it is written: `vec3h`."""
        # `vec3f` becomes `vec3h`, or `vec3f64` if it is wide.
        if not (self.is_half or self.narrow or self.wide):
            return self.type.spelling
        if isinstance(self.type, Scalar):
            return self.storage.value
        return f"{self.type.spelling[:-1]}{'h' if self.is_half else self.storage.value}"

    @property
    def column(self) -> Leaf | None:
        """The type of a matrix's columns in memory; None of other types."""
        if not isinstance(self.type, Matrix):
            return None
        return Leaf(self.type.column, self.is_half, wide=self.wide)


@final
@dataclass(frozen=True, slots=True)
class FixedArray:
    """A fixed array: `length` elements of one type."""

    element: MemoryType
    length: int

    @property
    def spelling(self) -> str:
        """The type as it is written, the outermost length first: `f32[2, 5]`."""
        return f"{self.innermost.spelling}[{', '.join(map(str, self.lengths))}]"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of this array and of the arrays in it, the outermost first."""
        inner = self.element.lengths if isinstance(self.element, FixedArray) else ()
        return (self.length, *inner)

    @property
    def innermost(self) -> Leaf | Struct:
        """The element type of the innermost array."""
        if isinstance(self.element, FixedArray):
            return self.element.innermost
        return self.element


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A field of a struct, with the `@align` and `@size` that the user gave."""

    name: str
    type: MemoryType
    align: int | None = None
    size: int | None = None
    doc: str = field(default="", compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True)
class Struct:
    """A `struct` item: its members in declared order.

    `path` is that of the file that declares it.
    """

    name: str
    members: tuple[Member, ...]
    path: str = ""
    doc: str = field(default="", compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        """Return the hash of the name, as structs are looked up at each read of a part."""
        return hash(self.name)

    @property
    def spelling(self) -> str:
        """The struct's name."""
        return self.name

    def member(self, name: str) -> Member | None:
        """Return the member with this name, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Member]:
        return {member.name: member for member in self.members}


MemoryType: TypeAlias = Leaf | FixedArray | Struct

LEAVES = {
    leaf.spelling: leaf
    for leaf in (
        *(Leaf(scalar) for scalar in (Scalar.F32, Scalar.I32, Scalar.U32)),
        *(Leaf(vector) for vector in VECTORS.values()),
        *(Leaf(matrix) for matrix in MATRICES.values()),
        Leaf(Scalar.F32, is_half=True),
        *(
            Leaf(vector, is_half=True)
            for vector in VECTORS.values()
            if vector.scalar is Scalar.F32
        ),
        *(Leaf(matrix, is_half=True) for matrix in MATRICES.values()),
    )
}
"""Every scalar, vector and matrix type that structs can hold, by its name."""

NARROW = {
    storage.value: Leaf(Scalar(f"{storage.value[0]}32"), narrow=storage)
    for storage in (Storage.U8, Storage.I8, Storage.U4, Storage.I4)
}
"""The integers of 8 and 4 bits, which are elements of tensors alone."""

_WIDE_SCALARS = (
    (Scalar.I32, Storage.I64),
    (Scalar.U32, Storage.U64),
    (Scalar.F32, Storage.F64),
)
WIDE = {
    leaf.spelling: leaf
    for scalar, storage in _WIDE_SCALARS
    for types in ((scalar,), VECTORS.values(), MATRICES.values())
    for type_ in types
    if scalar_of(type_) is scalar
    for leaf in (Leaf(type_, wide=storage),)
}
"""The types of 64 bits by their names here: naga's `vec2<u64>` is `vec2u64`."""


def lowest_and_highest(storage: Storage) -> tuple[int, int]:
    """Return the least and the greatest value of a narrow integer: -8 and 7 of i4."""
    if storage in {Storage.I8, Storage.I4}:
        return -(1 << (storage.bits - 1)), (1 << (storage.bits - 1)) - 1
    return 0, (1 << storage.bits) - 1


def structs_in(type_: MemoryType) -> Iterator[Struct]:
    """Yield every struct in a type, inner structs first; a struct may come more than once."""
    match type_:
        case Leaf():
            return
        case FixedArray(element=element):
            yield from structs_in(element)
        case Struct(members=members):
            for member in members:
                yield from structs_in(member.type)
            yield type_
        case _:
            assert_never(type_)


def holds_half(type_: MemoryType) -> bool:
    """Whether any part of the type is stored as f16."""
    match type_:
        case Leaf(is_half=is_half):
            return is_half
        case FixedArray(element=element):
            return holds_half(element)
        case Struct(members=members):
            return any(holds_half(member.type) for member in members)
        case _:
            assert_never(type_)
