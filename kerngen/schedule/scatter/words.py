"""Values encoded as u32, on which atomic operations reduce; WGSL has none on f32.

A sum of i32 is one of u32, by the same bits.  `max` and `min` need words in the order of
the values: an i32 with its sign flipped.  Those of f32 compare ranks, which are i32.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.nodes import ReduceKind
from kerngen.ir.types import Scalar, ValueType
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
    ("min", Scalar.U32): "0xffffffffu",
    ("min", Scalar.I32): "0xffffffffu",
}
"""The words of reductions of nothing."""


def has_word(kind: ReduceKind, type_: ValueType) -> bool:
    """Whether atomic operations can reduce such values in encoded form."""
    by_rank = type_ is Scalar.F32 and kind in {"max", "min"}
    return by_rank or (isinstance(type_, Scalar) and (kind, type_) in _START)


def start_word(kind: ReduceKind, type_: ValueType) -> t.Expr:
    """Return the encoded neutral value of a reduction."""
    assert isinstance(type_, Scalar)
    return t.Literal(_START[kind, type_])


def to_word(kind: ReduceKind, type_: ValueType, value: t.Expr) -> t.Expr:
    """Return the encoded form of a value."""
    match type_:
        case Scalar.I32 if kind == "sum":
            return t.call("bitcast<u32>", value)
        case Scalar.I32:
            return t.Binary("^", t.call("bitcast<u32>", value), _SIGN)
        case _:
            return value


def from_word(kind: ReduceKind, type_: ValueType, word: t.Expr) -> t.Expr:
    """Return the value that an encoded form has."""
    match type_:
        case Scalar.I32 if kind == "sum":
            return t.call("bitcast<i32>", word)
        case Scalar.I32:
            return t.call("bitcast<i32>", t.Binary("^", word, _SIGN))
        case _:
            return word
