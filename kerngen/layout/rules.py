"""WGSL's rules of alignment and size for host-shareable types.

`RULES` has a row per rule, with the section of the WGSL specification that it comes
from: `kerngen layout --explain` quotes them.  `VECTOR_LANES` and `leaf_footprint` hold
the numbers of scalars, vectors and matrices; `kerngen.layout.types` puts them together.

The uniform address space is held to the strict form of "Address Space Layout
Constraints", that of implementations without `uniform_buffer_standard_layout`: naga
knows no other, and every implementation accepts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never, final

from kerngen.ir.memory import Leaf
from kerngen.ir.types import Matrix, Scalar, Vector


@final
class Space(Enum):
    """An address space of buffers, by its name in WGSL."""

    STORAGE = "storage"
    UNIFORM = "uniform"


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its section in the WGSL specification, and its text."""

    section: str
    text: str


# The sections that rules are from.
_SIZES = "WGSL 14.4.1, Alignment and Size"
_MEMBERS = "WGSL 14.4.2, Structure Member Layout"
_CONSTRAINTS = "WGSL 14.4.5, Address Space Layout Constraints"
_ATTRIBUTES = "WGSL 12, Attributes"
_HERE = "kerngen, for implementations that ask for it or read it wrong"

RULES: Final = {
    "scalar": Rule(
        _SIZES, "A scalar has its size as its alignment: 4 bytes, 2 for f16."
    ),
    "vec2": Rule(_SIZES, "A vec2 is 2 scalars long, and aligned to as many bytes."),
    "vec3": Rule(_SIZES, "A vec3 is 3 scalars long, and aligned to 4 scalars."),
    "vec4": Rule(_SIZES, "A vec4 is 4 scalars long, and aligned to as many bytes."),
    "matrix": Rule(
        _SIZES, "A matrix is laid out like an array of its columns, each a vector."
    ),
    "array": Rule(
        _SIZES,
        "Elements of an array lie apart by their size, rounded up to their alignment; "
        "the array is aligned like its element.",
    ),
    "struct": Rule(
        _SIZES,
        "A struct is aligned like the member that wants most, and its size is rounded "
        "up to that.",
    ),
    "first": Rule(_MEMBERS, "The first member starts at offset 0."),
    "next": Rule(
        _MEMBERS,
        "A member starts at the first multiple of its alignment behind the member "
        "before it.",
    ),
    "uniform array": Rule(
        _CONSTRAINTS,
        "In a uniform buffer, an array is aligned to 16 bytes, and its elements lie a "
        "multiple of 16 apart.",
    ),
    "uniform struct": Rule(
        _CONSTRAINTS,
        "In a uniform buffer, a struct in a struct is aligned to 16 bytes, and what "
        "follows starts at least its size, rounded up to 16, behind its start; Tint "
        "asks for a multiple of 16.",
    ),
    "carrier": Rule(
        _HERE,
        "In a uniform buffer, elements that are shorter than 16 bytes are the first "
        "components of a vec4.",
    ),
    "words": Rule(
        _HERE,
        "In a uniform buffer, f16 in arrays and matrices lie two to a word of a vec4u.",
    ),
    "columns": Rule(
        _HERE,
        "In a uniform buffer, a matrix whose columns are less than 16 bytes long is "
        "kept as its columns, each in 16 bytes.",
    ),
    "@align": Rule(_ATTRIBUTES, "'@align(n)' raises the alignment of a member to n."),
    "@size": Rule(_ATTRIBUTES, "'@size(n)' reserves n bytes for a member."),
}
"""Every rule by name."""

UNIFORM_UNIT: Final = 16
"""The alignment of arrays and structs in the uniform address space, in bytes."""


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


VECTOR_LANES: Final = {
    2: Footprint(align=2, size=2),
    3: Footprint(align=4, size=3),
    4: Footprint(align=4, size=4),
}
"""Alignment and size of vectors by width, in units of the scalar's size.

So a vec3f has alignment 16 and size 12, a vec3h 8 and 6.
"""


def round_up(align: int, size: int) -> int:
    """Return the smallest multiple of `align` that is not below `size`."""
    return (size + align - 1) // align * align


def leaf_footprint(leaf: Leaf) -> Footprint:
    """Return AlignOf and SizeOf of a scalar, vector or matrix; bool has none."""
    unit = leaf.storage.size
    match leaf.type:
        case Scalar():
            return Footprint(unit, unit)
        case Vector(width=width):
            return _vector_footprint(unit, width)
        case Matrix(columns=columns, rows=rows):
            # Like an array of its columns: a mat2x3f is 2 * 16 bytes.
            column = _vector_footprint(unit, rows)
            return Footprint(column.align, columns * column.stride)
        case _:
            assert_never(leaf.type)


def _vector_footprint(unit: int, width: int) -> Footprint:
    # A vec3 has the alignment of a vec4, and its own size.
    lanes = VECTOR_LANES[width]
    return Footprint(lanes.align * unit, lanes.size * unit)


def leaf_rule(leaf: Leaf) -> Rule:
    """Return the rule that gives a leaf its alignment and size."""
    match leaf.type:
        case Scalar():
            return RULES["scalar"]
        case Vector(width=width):
            return RULES[f"vec{width}"]
        case Matrix():
            return RULES["matrix"]
        case _:
            assert_never(leaf.type)
