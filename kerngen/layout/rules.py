"""WGSL's rules of alignment and size for host-shareable types, as one table.

Section numbers are those of the WGSL specification, "Memory Layout" (14.4):

- 14.4.1 "Alignment and Size": AlignOf and SizeOf of every type.
- 14.4.2 "Structure Member Layout": offsets, and the struct's own alignment and size.
- 14.4.4 "Address Space Layout Constraints": what the uniform address space adds.

A type of the language that is new to this table (arrays, matrices, structs, f16) gets
its row here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from kerngen.ir.types import VECTORS, Scalar, ValueType, Vector


@final
@dataclass(frozen=True, slots=True)
class Footprint:
    """The AlignOf and SizeOf of a type, in bytes."""

    align: int
    size: int

    @property
    def stride(self) -> int:
        """The distance between the elements of an array of the type."""
        return round_up(self.align, self.size)


SCALARS: dict[ValueType, Footprint] = {
    Scalar.F32: Footprint(align=4, size=4),
    Scalar.I32: Footprint(align=4, size=4),
    Scalar.U32: Footprint(align=4, size=4),
}
"""14.4.1, the rows of the scalars.  bool is missing: it is not host-shareable."""

VECTOR_LANES: dict[int, Footprint] = {
    2: Footprint(align=2, size=2),
    3: Footprint(align=4, size=3),
    4: Footprint(align=4, size=4),
}
"""14.4.1, the rows of the vectors by width, in units of the scalar's size."""


def round_up(align: int, size: int) -> int:
    """Return the smallest multiple of `align` that is not below `size`."""
    return (size + align - 1) // align * align


def _vector_footprint(vector: Vector) -> Footprint:
    unit = SCALARS[vector.scalar].size
    lanes = VECTOR_LANES[vector.width]
    return Footprint(align=lanes.align * unit, size=lanes.size * unit)


FOOTPRINTS: dict[ValueType, Footprint] = {
    **SCALARS,
    **{vector: _vector_footprint(vector) for vector in VECTORS.values()},
}
"""AlignOf and SizeOf of every host-shareable type of the language."""


def member_offsets(members: Iterable[Footprint]) -> Iterator[int]:
    """Yield the offset of each member of a struct (14.4.2)."""
    end = 0
    for member in members:
        offset = round_up(member.align, end)
        yield offset
        end = offset + member.size


def struct_footprint(members: Iterable[Footprint]) -> Footprint:
    """Return the alignment and size of a struct of `members` (14.4.1, last row).

    Scalars and vectors need no more in the uniform address space than elsewhere
    (14.4.4); arrays and structs will.
    """
    laid = tuple(members)
    align = max((member.align for member in laid), default=1)
    end = 0
    for offset, member in zip(member_offsets(laid), laid, strict=True):
        end = offset + member.size
    return Footprint(align, round_up(align, end))
