"""Laid-out types: types with their offsets and strides in an address space.

`lay_out` turns a type of memory into one of four forms.  The shader's declarations, the
NumPy dtypes and the tables of `kerngen layout` are all printed from them:

    vec3f                 LeafLayout       16-byte alignment, 12 bytes
    f32[5]                ArrayLayout      stride 4 in storage, 16 in a uniform buffer
    mat2x2f               LeafLayout       in a uniform buffer a ColumnsLayout, 2 * 16 bytes
    struct Light { ... }  StructLayout     a LayoutField for each member
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeAlias, assert_never, final

from kerngen.ir.cached import cached_on_instance
from kerngen.ir.memory import FixedArray, Leaf, Member, MemoryType, Struct
from kerngen.ir.types import Matrix, Scalar, Vector, scalar_of
from kerngen.layout.rules import (
    RULES,
    UNIFORM_UNIT,
    Footprint,
    Rule,
    Space,
    leaf_footprint,
    leaf_rule,
    round_up,
)


@final
@dataclass(frozen=True, slots=True)
class LeafLayout:
    """A scalar, vector or matrix in WGSL's own layout."""

    leaf: Leaf
    align: int
    size: int


@final
@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """A fixed array; its elements lie `stride` bytes apart.

    In WGSL it is an array of `carrier`, which is one of three:

    - the element itself: `array<f32, 5>` in a storage buffer
    - a wider type, as the uniform address space requires a stride of 16 bytes: an f32 is the
      member `part`, `x`, of each item of an `array<vec4f, 5>`
    - a vec4u, in which elements lie `in_words`: two f16 in each component
    """

    element: Laid
    length: int
    stride: int
    align: int
    carrier: Laid
    part: str = ""

    @property
    def in_words(self) -> bool:
        """Whether f16 elements are the halves of words in a vec4u, the first one lower."""
        half = isinstance(self.element, LeafLayout) and self.element.leaf.is_half
        return half and self.carrier != self.element

    @property
    def size(self) -> int:
        """The bytes of all elements."""
        return self.length * self.stride


@final
@dataclass(frozen=True, slots=True)
class ColumnsLayout:
    """A matrix laid out as an array of its columns."""

    leaf: Leaf
    columns: ArrayLayout

    @property
    def align(self) -> int:
        """The alignment of the array, in bytes."""
        return self.columns.align

    @property
    def size(self) -> int:
        """The size of the array, in bytes."""
        return self.columns.size


@final
@dataclass(frozen=True, slots=True)
class LayoutField:
    """A laid-out member of a struct: its offset, size and padding.

    `span` is the distance to the next member, or to the struct's end: `size` and the padding
    behind it.  If there is padding, `span` is printed as `@size(span)`.
    """

    name: str
    type: MemoryType
    laid: Laid
    offset: int
    align: int
    span: int
    rules: tuple[Rule, ...]
    doc: str = ""

    @property
    def size(self) -> int:
        """The size of the member's value in bytes, without padding."""
        return self.laid.size

    @property
    def end(self) -> int:
        """The offset of the first byte after the value."""
        return self.offset + self.size

    @property
    def padding(self) -> int:
        """The number of unused bytes after the value."""
        return self.span - self.size


@final
@dataclass(frozen=True)
class StructLayout:
    """A laid-out struct: its fields in order, its alignment and size in bytes.

    A struct without fields has size 0: there is nothing to bind.
    """

    name: str
    space: Space
    fields: tuple[LayoutField, ...]
    size: int
    align: int
    struct: Struct | None = None
    """The struct of the program, if it is one."""

    def __hash__(self) -> int:
        """Return the hash of the name, which equal layouts share."""
        return hash(self.name)

    def field(self, name: str) -> LayoutField:
        """Return the field with this name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, LayoutField]:
        return {field.name: field for field in self.fields}


Laid: TypeAlias = LeafLayout | ArrayLayout | ColumnsLayout | StructLayout


def lay_out(type_: MemoryType, space: Space) -> Laid:
    """Return a type laid out for an address space."""
    match type_:
        case Leaf():
            return lay_out_leaf(type_, space)
        case FixedArray(element=element, length=length):
            return _array(lay_out(element, space), length, space)
        case Struct():
            return _struct(type_, space)
        case _:
            assert_never(type_)


@cache
def lay_out_leaf(leaf: Leaf, space: Space) -> Laid:
    """Return a scalar, vector or matrix laid out for an address space."""
    if space is Space.UNIFORM and _needs_columns(leaf):
        return _columns(leaf)
    footprint = leaf_footprint(leaf)
    return LeafLayout(leaf, footprint.align, footprint.size)


def _needs_columns(leaf: Leaf) -> bool:
    """Whether a uniform matrix has columns that don't fill 16 bytes.

    naga reads those of `matCx2f` wrong in a nested struct, and drivers those of f16.
    """
    column = leaf.column
    return column is not None and leaf_footprint(column).stride % UNIFORM_UNIT != 0


def _columns(leaf: Leaf) -> ColumnsLayout:
    """Return a uniform matrix as an array of its columns, each in 16 bytes."""
    column = leaf.column
    assert column is not None, "only matrices have columns"
    assert isinstance(leaf.type, Matrix), "only matrices have columns"
    laid = lay_out(column, Space.UNIFORM)
    return ColumnsLayout(leaf, _array(laid, leaf.type.columns, Space.UNIFORM))


def _array(element: Laid, length: int, space: Space) -> ArrayLayout:
    """Return a fixed array; in a uniform buffer its elements are a multiple of 16 apart."""
    # The carrier fills the stride, so that WGSL's array has it without an attribute.
    footprint = Footprint(element.align, element.size)
    stride, align = footprint.stride, footprint.align
    carrier, part = element, ""
    if space is Space.UNIFORM:
        align = round_up(UNIFORM_UNIT, align)
        stride = round_up(UNIFORM_UNIT, stride)
        if isinstance(element, LeafLayout) and stride != footprint.stride:
            carrier, part = _carrier(element)
    return ArrayLayout(element, length, stride, align, carrier, part)


def _carrier(element: LeafLayout) -> tuple[Laid, str]:
    """Return the type of 16 bytes that holds an array's element, and the member of it.

    What is kept as f16 is carried as words: drivers read an f16 that lies in an array
    or a matrix in a uniform buffer wrong (seen on NVIDIA's, 3 times in 1000 structs).
    """
    leaf = element.leaf
    if leaf.is_half:
        return _vec4(Scalar.U32), ""
    width = leaf.type.width if isinstance(leaf.type, Vector) else 1
    return _vec4(scalar_of(leaf.type)), "xyzw"[:width]


def _vec4(scalar: Scalar) -> Laid:
    return lay_out(Leaf(Vector(scalar, 4)), Space.UNIFORM)


@cached_on_instance
def _struct(struct: Struct, space: Space) -> StructLayout:
    """Lay out a struct of the program.

    In a uniform buffer it is always in another struct, which asks for a size and an
    alignment in units of 16 bytes.  It keeps its name there if that changes nothing.
    """
    # `Light` if the declaration is the same for both address spaces, else `LightUniform`.
    stored = place(struct.name, struct.members, Space.STORAGE, struct)
    if space is Space.STORAGE:
        return stored
    unit = UNIFORM_UNIT
    laid = place(struct.name, struct.members, space, struct, least_align=unit)
    same = declared_form(laid) == declared_form(stored)
    return laid if same else replace(laid, name=f"{struct.name}Uniform")


def place(
    name: str,
    members: Iterable[Member],
    space: Space,
    struct: Struct | None = None,
    least_align: int = 1,
) -> StructLayout:
    """Return a struct of members that are laid out one behind the other.

    Its alignment is at least `least_align`; `struct` is its declaration, None for the uniform
    struct of a kernel.
    """
    # Members are placed one behind the other; then each span reaches to the next offset.
    listed = tuple(members)
    placed: list[LayoutField] = []
    end = 0
    for member in listed:
        laid = lay_out(member.type, space)
        wanted = footprint_of(member, space)
        offset = round_up(wanted.align, end)
        placed.append(
            LayoutField(
                name=member.name,
                type=member.type,
                laid=laid,
                offset=offset,
                align=wanted.align,
                span=wanted.size,
                rules=_rules(member, laid, space, placed[-1] if placed else None),
                doc=member.doc,
            )
        )
        end = offset + wanted.size
    align = max((least_align, *(field.align for field in placed)))
    size = round_up(align, end)
    starts = [*(field.offset for field in placed[1:]), size]
    fields = tuple(
        replace(field, span=start - field.offset)
        for field, start in zip(placed, starts, strict=False)
    )
    return StructLayout(name, space, fields, size, align, struct)


def footprint_of(member: Member, space: Space) -> Footprint:
    """Return a member's alignment, and its size with the padding that must be behind it.

    Tint requires that whatever follows a struct in a uniform buffer is a multiple of 16
    bytes behind it, even with an '@size'.
    """
    laid = lay_out(member.type, space)
    size = max(laid.size, member.size or 0)
    if space is Space.UNIFORM and isinstance(laid, StructLayout):
        size = round_up(UNIFORM_UNIT, size)
    return Footprint(max(laid.align, member.align or 1), size)


def _rules(
    member: Member, laid: Laid, space: Space, before: LayoutField | None
) -> tuple[Rule, ...]:
    """Return the rules that put a member where it is, behind the one before it."""
    # Of its place: the member before it; then of its type, and of its own attributes.
    names = ["first" if before is None else "next"]
    if before is not None:
        names += ["@size"] if RULES["@size"] in before.rules else []
        if space is Space.UNIFORM and isinstance(before.laid, StructLayout):
            names.append("uniform struct")
    if space is Space.UNIFORM:
        names += _constraints(laid)
    names += ["@align"] if member.align else []
    names += ["@size"] if member.size else []
    unique = dict.fromkeys(names)
    return (*type_rules(member.type), *(RULES[name] for name in unique))


def _constraints(laid: Laid) -> list[str]:
    """Return the rules of the uniform address space for a type, the outermost first."""
    match laid:
        case LeafLayout():
            return []
        case ArrayLayout(element=element):
            carried = ["words"] if laid.in_words else ["carrier"] if laid.part else []
            return ["uniform array", *carried, *_constraints(element)]
        case ColumnsLayout(columns=columns):
            return ["columns", *(["words"] if columns.in_words else [])]
        case StructLayout():
            return ["uniform struct"]
        case _:
            assert_never(laid)


def type_rules(type_: MemoryType) -> tuple[Rule, ...]:
    """Return WGSL's rules for the alignment and size of a type, outermost first."""
    match type_:
        case Leaf(column=Leaf() as column):
            return RULES["matrix"], leaf_rule(column)
        case Leaf():
            return (leaf_rule(type_),)
        case FixedArray(element=element):
            inner = type_rules(element)
            return inner if RULES["array"] in inner else (RULES["array"], *inner)
        case Struct():
            return (RULES["struct"],)
        case _:
            assert_never(type_)


def declared_form(laid: Laid) -> object:
    """Return a hashable key of a laid-out type: equal keys have equal declarations in WGSL."""
    match laid:
        case LeafLayout(leaf=leaf):
            return leaf
        case ArrayLayout():
            return laid.length, laid.stride, laid.part, declared_form(laid.carrier)
        case ColumnsLayout(columns=columns):
            return declared_form(columns)
        case StructLayout(name=name, fields=fields):
            parts = ((f.name, f.offset, f.span, declared_form(f.laid)) for f in fields)
            return name, *parts
        case _:
            assert_never(laid)


def structs_of(laid: Laid) -> Iterator[StructLayout]:
    """Yield every struct in a laid-out type, inner ones first."""
    match laid:
        case LeafLayout():
            return
        case ArrayLayout(carrier=carrier):
            yield from structs_of(carrier)
        case ColumnsLayout(columns=columns):
            yield from structs_of(columns)
        case StructLayout(fields=fields):
            for field in fields:
                yield from structs_of(field.laid)
            yield laid
        case _:
            assert_never(laid)


def nesting(laid: Laid) -> int:
    """Return the nesting depth of a type, as WGSL's limit counts it."""
    match laid:
        case LeafLayout(leaf=leaf):
            return _LEVELS[type(leaf.type)]
        case ArrayLayout(carrier=carrier):
            return 1 + nesting(carrier)
        case ColumnsLayout(columns=columns):
            return nesting(columns)
        case StructLayout(fields=fields):
            return 1 + max(nesting(field.laid) for field in fields)
        case _:
            assert_never(laid)


_LEVELS: dict[type, int] = {Scalar: 0, Vector: 1, Matrix: 2}
"""The nesting depth of scalars, vectors and matrices."""


def column_stride(leaf: Leaf) -> tuple[int, int] | None:
    """Return a matrix's number of columns and their distance in bytes; None for other types."""
    column = leaf.column
    if column is None or not isinstance(leaf.type, Matrix):
        return None
    return leaf.type.columns, leaf_footprint(column).stride


def column_size(leaf: Leaf) -> int:
    """Return the size of a matrix's column in bytes, without padding.

    For a scalar or vector it is that of the whole.
    """
    return leaf_footprint(leaf.column or leaf).size
