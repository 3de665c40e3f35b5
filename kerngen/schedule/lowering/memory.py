"""Read and write elements of buffers, converting between memory's form and values.

In memory a scalar may be an f16, and in the uniform struct an array's elements may be carried
in vectors of 16 bytes, or in words of two f16 each (`layout/types.py`).  Values are f32, i32,
u32, bool, and vectors and matrices of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from kerngen.ir.memory import Leaf
from kerngen.ir.nodes import At, Field, Path
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.layout.rules import Space
from kerngen.layout.types import (
    ArrayLayout,
    ColumnsLayout,
    Laid,
    LeafLayout,
    StructLayout,
    lay_out,
)
from kerngen.schedule.lowering.subscripts import lower_subscript
from kerngen.shader import tree as t
from kerngen.shader.structs import members_of

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer


def follow(to: Lowerer, place: t.Expr, laid: Laid, path: Path) -> tuple[t.Expr, Laid]:
    """Return the place and layout of the part that `path` (`.x`, `[2]`, ...) selects.

    `place` and `laid` are those of the whole, in a buffer.
    """
    for step in path:
        match step, laid:
            case Field(name), StructLayout():
                place = place.member(members_of(laid)[name])
                laid = laid.field(name).laid
            case At(), ArrayLayout():
                place, laid = element(place, laid, lower_at(to, step))
            case _:
                raise AssertionError(f"{step} of {laid}")
    return place, laid


def lower_at(to: Lowerer, at: At) -> t.Expr:
    """Return a subscript of a fixed array, vector or matrix as a u32 within its length."""
    return lower_subscript(to, at.place, at.length).expr


def element(place: t.Expr, array: ArrayLayout, index: t.Operand) -> tuple[t.Expr, Laid]:
    """Return element `index` of a fixed array at `place`, and the element's layout."""
    # In the uniform struct, elements are 16 bytes apart: f16 are packed in words, and a
    # smaller element is a member of a vector.
    carried = place[index]
    if array.in_words:
        assert isinstance(array.element, LeafLayout), "words carry f16"
        type_ = array.element.leaf.type
        return _from_words(carried, type_), lay_out(Leaf(type_), Space.UNIFORM)
    return (carried.member(array.part) if array.part else carried), array.element


def _from_words(words: t.Expr, type_: ValueType) -> t.Expr:
    """Return the value of an f16, or of a vector of them, from words of two f16 each."""
    low, high = (t.call("unpack2x16float", words.member(word)) for word in "xy")
    match type_:
        case Scalar():
            return low.member("x")
        case Vector(width=2):
            return low
        case Vector(width=width):
            rest = high if width == 4 else high.member("x")
            return t.call(type_.spelling, low, rest)
        case Matrix():
            raise AssertionError("matrices are carried column by column")
        case _:
            assert_never(type_)


def read(place: t.Expr, laid: Laid) -> t.Expr:
    """Return the value of the scalar, vector or matrix at `place`, an f16 converted to f32."""
    match laid:
        case LeafLayout(leaf=leaf) if not leaf.is_half:
            return place
        # f16 in storage: converted as a whole, a matrix column by column.
        case LeafLayout(leaf=leaf):
            if isinstance(leaf.type, Matrix):
                columns = (place[n] for n in range(leaf.type.columns))
                column = leaf.type.column.spelling
                parts = tuple(t.call(column, column_) for column_ in columns)
                return t.Call(leaf.type.spelling, parts)
            return t.call(leaf.type.spelling, place)
        # A matrix in the uniform struct that lies there as an array of its columns.
        case ColumnsLayout(leaf=leaf, columns=columns):
            places = (element(place, columns, n) for n in range(columns.length))
            parts = tuple(read(*column) for column in places)
            return t.Call(leaf.type.spelling, parts)
        case ArrayLayout() | StructLayout():
            raise AssertionError("arrays and structs are read part by part")
        case _:
            assert_never(laid)


def read_part(place: t.Expr, laid: Laid, index: t.Expr) -> t.Expr:
    """Return component or column `index` of the vector or matrix at `place`, read alone."""
    match laid:
        case LeafLayout(leaf=leaf):
            part = place[index]
            if not leaf.is_half:
                return part
            matrix = leaf.type if isinstance(leaf.type, Matrix) else None
            return t.call(matrix.column.spelling if matrix else "f32", part)
        case ColumnsLayout(columns=columns):
            return read(*element(place, columns, index))
        case ArrayLayout() | StructLayout():
            raise AssertionError("arrays and structs have elements and members")
        case _:
            assert_never(laid)


def stored(value: t.Expr, laid: Laid) -> t.Expr:
    """Return a value in its form in memory: f32 become f16 if f16 is stored.

    A matrix that is converted must be a name.
    """
    assert isinstance(laid, LeafLayout), "in storage, values lie as WGSL has them"
    leaf = laid.leaf
    if not leaf.is_half:
        return value
    if isinstance(leaf.type, Matrix):
        column = f"{leaf.type.column.spelling[:-1]}h"
        parts = tuple(t.call(column, value[n]) for n in range(leaf.type.columns))
        return t.Call(leaf.spelling, parts)
    return t.call(leaf.spelling, value)
