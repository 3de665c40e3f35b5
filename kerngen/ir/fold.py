"""Constant folding, only where a shader would have an invalid constant expression.

WGSL evaluates constant expressions when it compiles, and refuses those that overflow,
divide by zero or have no value.  These are folded here, by the rules that hold at run time;
all others stay as the user wrote them.
"""

from __future__ import annotations

from dataclasses import replace

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.bits import bit_field
from kerngen.ir.builtins.evaluate import (
    Value,
    constant_value,
    integer_op,
    wrap,
)
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar, ValueType


def fold(expr: ir.Expr) -> ir.Expr:
    """Return an expression with its top node folded; its parts must be folded already.

    Raises `NotFiniteError` where a float constant expression has no finite value.

    Before:  x[i] / 0     1 << 40u     sqrt(2.0)       0.5 * TWO
    After:   x[i]         256          1.4142135...    0.5 * TWO
    """
    match expr:
        case ir.Unary():
            return _fold_unary(expr)
        case ir.Binary():
            return _fold_binary(expr)
        case ir.Cast():
            return _fold_cast(expr)
        case ir.BuiltinCall():
            return _fold_call(expr)
        case _:
            return expr


def _constant(value: Value, scalar: ValueType) -> ir.Constant:
    assert isinstance(scalar, Scalar), "only scalars have a constant value"
    return ir.Constant(float(value) if scalar is Scalar.F32 else value, scalar)


def _fold_unary(expr: ir.Unary) -> ir.Expr:
    """Return a negated literal as a literal; `-i` wraps for the lowest i32."""
    value = constant_value(expr)
    if value is None or expr.op == "not":
        return expr
    if expr.type.is_integer or isinstance(expr.operand, ir.Constant):
        return _constant(value, expr.type)
    return expr


def _fold_binary(expr: ir.Binary) -> ir.Expr:
    value = constant_value(expr)
    if value is not None:
        return expr if _is_plain(expr) else _constant(value, expr.type)
    right = constant_value(expr.right)
    if right is None or not expr.type.is_integer:
        return expr
    # At run time, WGSL has x / 0 = x and x % 0 = 0, and takes shift counts modulo 32.  With
    # a constant on the right all three are errors when it compiles.
    if expr.op == "/" and right == 0:
        return expr.left
    if expr.op == "%" and right == 0:
        return _constant(0, expr.type)
    if expr.op in {"<<", ">>"} and int(right) > 31:
        return replace(expr, right=ir.Constant(int(right) % 32, Scalar.U32))
    return expr


def _is_plain(expr: ir.Binary) -> bool:
    """Whether WGSL accepts a constant expression: of floats, or without overflow."""
    if not expr.type.is_integer:
        return True
    left, right = constant_value(expr.left), constant_value(expr.right)
    if expr.op in {"/", "%", "<<", ">>"} or left is None or right is None:
        return False
    assert isinstance(expr.type, Scalar), "only scalars have a constant value"
    exact = integer_op(expr.op, int(left), int(right))
    return exact == wrap(exact, expr.type)


def _fold_cast(expr: ir.Cast) -> ir.Expr:
    value = constant_value(expr)
    if value is None:
        return expr
    to_float = expr.type is Scalar.F32 and isinstance(expr.operand, ir.ConstRef)
    return expr if to_float else _constant(value, expr.type)


def _fold_call(expr: ir.BuiltinCall) -> ir.Expr:
    value = constant_value(expr)
    if value is not None:
        return _constant(value, expr.type)
    row = BUILTINS.get(expr.builtin)
    if row is not None and row.takes_bit_field:
        return _fold_field(expr)
    return expr


def _fold_field(expr: ir.BuiltinCall) -> ir.Expr:
    """Return a call with a constant bit field cut to 32 bits, as at run time.

    `extractBits(x, 30u, 8u)` becomes `extractBits(x, 30u, 2u)`.
    """
    *rest, offset, count = expr.arguments
    start, width = constant_value(offset), constant_value(count)
    if start is not None:
        offset = _cut(offset, bit_field(int(start), 0)[0])
    if width is not None:
        count = _cut(count, bit_field(int(start or 0), int(width))[1])
    return replace(expr, arguments=(*rest, offset, count))


def _cut(expr: ir.Expr, value: int) -> ir.Expr:
    return expr if constant_value(expr) == value else ir.Constant(value, Scalar.U32)
