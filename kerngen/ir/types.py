"""The types of values in the kernel language."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never, final


@final
class Scalar(Enum):
    """A scalar type.  The value is the name that both `.kern` and WGSL use."""

    F32 = "f32"
    I32 = "i32"
    U32 = "u32"
    BOOL = "bool"

    # An enum's own hash is of its name, in Python: nodes hash their types all the time.
    __hash__ = object.__hash__

    @property
    def is_integer(self) -> bool:
        """Whether values are 32-bit integers."""
        return self in (Scalar.I32, Scalar.U32)

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on the type."""
        return self is not Scalar.BOOL

    @property
    def spelling(self) -> str:
        """The type's name."""
        return self.value


@final
class Storage(Enum):
    """The type of a tensor's elements in memory, by its name in `.kern` and WGSL.

    Elements of f16 are read as f32, and rounded when written.  Integers of 8 and 4 bits are
    packed into words; they are read as i32 or u32, and keep the lower bits of what is
    written.  Types of 64 bits are for `kerngen bind` alone.
    """

    F32 = "f32"
    I32 = "i32"
    U32 = "u32"
    F16 = "f16"
    I64 = "i64"
    U64 = "u64"
    F64 = "f64"
    U8 = "u8"
    I8 = "i8"
    U4 = "u4"
    I4 = "i4"

    @property
    def spelling(self) -> str:
        """The type's name."""
        return self.value

    @property
    def size(self) -> int:
        """The number of bytes of an element, or of the word that it shares with others."""
        return max(self.bits, 16 if self is Storage.F16 else 32) // 8

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return int(self.value[1:])

    @property
    def per_word(self) -> int:
        """The number of elements in a word of 32 bits: 8 of u4."""
        return 32 // self.bits


F32_MAX = (2.0 - 2.0**-23) * 2.0**127
"""The largest finite f32."""

F16_MAX = 65504.0
"""The largest finite f16."""


@final
@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of 2 to 4 numeric scalars."""

    scalar: Scalar
    width: int

    @property
    def is_integer(self) -> bool:
        """False: only a scalar is an integer."""
        return False

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on the type."""
        return True

    @property
    def spelling(self) -> str:
        """The type's name: `vec3f`."""
        return f"vec{self.width}{self.scalar.value[0]}"


@final
@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of f32: `columns` vectors of `rows` components, as in WGSL."""

    columns: int
    rows: int

    @property
    def is_integer(self) -> bool:
        """False: only a scalar is an integer."""
        return False

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on the type."""
        return True

    @property
    def column(self) -> Vector:
        """The type of a column."""
        return Vector(Scalar.F32, self.rows)

    @property
    def spelling(self) -> str:
        """The type's name: `mat4x3f`."""
        return f"mat{self.columns}x{self.rows}f"


ValueType: TypeAlias = Scalar | Vector | Matrix
"""The type of an expression."""

VECTORS = {
    vector.spelling: vector
    for scalar in (Scalar.F32, Scalar.I32, Scalar.U32)
    for vector in (Vector(scalar, 2), Vector(scalar, 3), Vector(scalar, 4))
}
"""Every vector type by its name in the language."""

MATRICES = {
    matrix.spelling: matrix
    for columns in (2, 3, 4)
    for matrix in (Matrix(columns, 2), Matrix(columns, 3), Matrix(columns, 4))
}
"""Every matrix type by its name in the language."""


COMPOSITES: dict[str, Vector | Matrix] = {**VECTORS, **MATRICES}
"""Every type with components by its name in the language."""


def scalar_of(type_: ValueType) -> Scalar:
    """Return the type of a value's components; for a scalar, its own type."""
    match type_:
        case Scalar():
            return type_
        case Vector(scalar=scalar):
            return scalar
        case Matrix():
            return Scalar.F32
        case _:
            assert_never(type_)


CASTS = {scalar.spelling: scalar for scalar in (Scalar.F32, Scalar.I32, Scalar.U32)}
"""The types that a value can be converted to, by the name in the language."""
