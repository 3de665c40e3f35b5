"""Values as words that atomic operations of u32 reduce: WGSL has none of f32.

A sum of i32 is one of u32, by the same bits.  `max` and `min` need words in the order of
the values: for an i32 its sign is flipped; for an f32 its sign, or where that is set, all
bits (-1.0 < -0.0 < 0.0 < 1.0).  A NaN is a word beyond all others, so that it comes out
whenever there is one, as in the reference.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.nodes import ReduceKind
from kerngen.ir.types import Scalar, ValueType
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.shader import tree as t

ATOMIC: Final[dict[ReduceKind, str]] = {
    "sum": "atomicAdd",
    "max": "atomicMax",
    "min": "atomicMin",
}
"""WGSL's operations; there is no product."""

_SIGN: Final = t.Literal("0x80000000u")

_START: Final[dict[tuple[ReduceKind, Scalar], str]] = {
    ("sum", Scalar.U32): "0u",
    ("sum", Scalar.I32): "0u",
    ("max", Scalar.U32): "0u",
    ("max", Scalar.I32): "0u",
    ("max", Scalar.F32): "0x007fffffu",
    ("min", Scalar.U32): "0xffffffffu",
    ("min", Scalar.I32): "0xffffffffu",
    ("min", Scalar.F32): "0xff800000u",
}
"""The words of reductions of nothing; those of f32 are infinities."""


def has_word(kind: ReduceKind, type_: ValueType) -> bool:
    """Whether atomic operations reduce such values."""
    return isinstance(type_, Scalar) and (kind, type_) in _START


def start_word(kind: ReduceKind, type_: ValueType) -> t.Expr:
    """Return the word of a reduction of nothing."""
    assert isinstance(type_, Scalar)
    return t.Literal(_START[kind, type_])


def to_word(
    shader: ShaderBuilder, kind: ReduceKind, type_: ValueType, value: t.Expr
) -> t.Expr:
    """Return the word of a value."""
    match type_:
        case Scalar.F32:
            return t.call(shader.helper(f"to_{kind}_word", 1), value)
        case Scalar.I32 if kind == "sum":
            return t.call("bitcast<u32>", value)
        case Scalar.I32:
            return t.Binary("^", t.call("bitcast<u32>", value), _SIGN)
        case _:
            return value


def from_word(
    shader: ShaderBuilder, kind: ReduceKind, type_: ValueType, word: t.Expr
) -> t.Expr:
    """Return the value of a word."""
    match type_:
        case Scalar.F32:
            return t.call(shader.helper("from_word", 1), word)
        case Scalar.I32 if kind == "sum":
            return t.call("bitcast<i32>", word)
        case Scalar.I32:
            return t.call("bitcast<i32>", t.Binary("^", word, _SIGN))
        case _:
            return word
