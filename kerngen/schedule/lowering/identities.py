"""Reductions in WGSL: their neutral values, and how two partial results are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from kerngen.ir.builtins.evaluate import bounds
from kerngen.ir.nodes import ReduceKind
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.schedule.lowering.argmax import BETTER, no_place
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.builder import ShaderBuilder

_START: dict[tuple[ReduceKind, Scalar], str] = {
    ("sum", Scalar.F32): "0.0",
    ("sum", Scalar.I32): "0i",
    ("sum", Scalar.U32): "0u",
    ("prod", Scalar.F32): "1.0",
    ("prod", Scalar.I32): "1i",
    ("prod", Scalar.U32): "1u",
    ("max", Scalar.I32): f"i32({bounds(Scalar.I32)[0]})",
    ("max", Scalar.U32): f"{bounds(Scalar.U32)[0]}u",
    ("min", Scalar.I32): f"{bounds(Scalar.I32)[1]}i",
    ("min", Scalar.U32): f"{bounds(Scalar.U32)[1]}u",
}
"""The value of an empty reduction.

That of a `max` or `min` of f32 is infinite, for which WGSL has no literal (`infinity`).
"""


def infinity(shader: ShaderBuilder, *, negative: bool = False) -> t.Expr:
    """Return f32's infinity, or its negative, by a helper: WGSL has no literal for it."""
    value = t.call(shader.helper("infinity", 1))
    return t.Unary("-", value) if negative else value


def identity(
    shader: ShaderBuilder, kind: ReduceKind, type_: ValueType, lanes: int = 1
) -> t.Expr:
    """Return a reduction's neutral value, such as 0 for `sum`, in each of a vector's parts."""
    if kind in {"argmax", "argmin"}:
        return no_place(shader)
    # That of `max` and `min` of floats is infinite; all others are in the table.
    scalar = scalar_of(type_)
    if (kind, scalar) in _START:
        start: t.Expr = t.Literal(_START[kind, scalar])
    else:
        start = infinity(shader, negative=kind == "max")
    match type_:
        case Scalar():
            return start if lanes == 1 else t.Call(f"vec4{scalar.value[0]}", (start,))
        case Vector():
            return t.Call(type_.spelling, (start,))
        case Matrix(columns=columns, column=column):
            return t.Call(type_.spelling, (identity(shader, kind, column),) * columns)
        case _:
            assert_never(type_)


def combine(kind: ReduceKind, left: t.Expr, right: t.Expr) -> t.Expr:
    """Return the combination of two partial results."""
    match kind:
        case "sum":
            return t.Binary("+", left, right)
        case "prod":
            return t.Binary("*", left, right)
        case "max" | "min":
            return t.call(kind, left, right)
        case "argmax" | "argmin":
            return t.call(BETTER, left, right)


def in_pairs(kind: ReduceKind, values: Sequence[t.Expr]) -> t.Expr:
    """Return several partial results combined pairwise; their number is a power of two.

    Of four values that is `(a + b) + (c + d)`, whose two inner sums don't wait for each other.
    """
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [combine(kind, left, right) for left, right in pairs]
    return values[0]


def accumulate(kind: ReduceKind, total: t.Expr, term: t.Expr) -> t.Stmt:
    """Return the statement that adds one more term to `total`."""
    match kind:
        case "sum":
            return t.Assign(total, term, "+=")
        case "prod":
            return t.Assign(total, term, "*=")
        case "max" | "min":
            return t.Assign(total, t.call(kind, total, term))
        case "argmax" | "argmin":
            return t.Assign(total, t.call(BETTER, total, term))


def across(kind: ReduceKind, vector: t.Expr) -> t.Expr:
    """Return the four components of `vector` combined to one partial result."""
    return in_pairs(kind, [t.Member(vector, component) for component in "xyzw"])
