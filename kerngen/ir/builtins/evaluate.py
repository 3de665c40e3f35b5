"""Constant evaluation: of integers by WGSL's rules, of floats in double.

Integers wrap to 32 bits.  A float result must be finite in f32, but keeps the precision of
a double.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import F32_MAX, Scalar, scalar_of
from kerngen.plan import hostmath

Value: TypeAlias = float | int | bool

_WRAPPING = {Scalar.I32: hostmath.wrap_i32, Scalar.U32: hostmath.wrap_u32}
_SATURATING = {Scalar.I32: hostmath.to_i32, Scalar.U32: hostmath.to_u32}
_BOUNDS = {
    Scalar.I32: (hostmath.I32_MIN, hostmath.I32_MAX),
    Scalar.U32: (0, hostmath.U32_MAX),
}


class NotFiniteError(Exception):
    """A constant expression has no finite value in its type."""


def bounds(scalar: Scalar) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer type."""
    return _BOUNDS[scalar]


def wrap(value: int, scalar: Scalar) -> int:
    """Return an integer wrapped to the 32 bits of its type."""
    return _WRAPPING[scalar](value)


def as_f32(value: float) -> float:
    """Return a double unchanged if it rounds to a finite f32; raise `NotFiniteError` if not."""
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise NotFiniteError from None
    if not math.isfinite(rounded):
        raise NotFiniteError
    # A double just above the largest f32 rounds to it: then it is that number.
    return max(-F32_MAX, min(F32_MAX, value))


def constant_value(expr: ir.Expr) -> Value | None:
    """Return the value of a constant expression, or None if it is not constant.

    Raises `NotFiniteError` where a float operation has no finite result.  The value is
    cached in the node.
    """
    if isinstance(expr, ir.Constant | ir.ConstRef):
        return expr.value
    if not isinstance(expr, ir.Computed):
        return None
    if expr.is_constant and isinstance(expr.type, Scalar) and expr.known is None:
        object.__setattr__(expr, "known", _computed(expr, expr.type))
    return expr.known


def _computed(
    expr: ir.Unary | ir.Binary | ir.Select | ir.Cast | ir.BuiltinCall, scalar: Scalar
) -> Value | None:
    """Return the value of an operation on constants, or None if an operand has none."""
    if isinstance(expr, ir.Cast) and expr.is_halved:
        return None
    known = [constant_value(operand) for operand in expr.operands]
    values = [value for value in known if value is not None]
    if len(values) < len(known):
        return None
    match expr:
        case ir.Unary(op=op):
            return _unary(op, values[0], scalar)
        case ir.Binary(op=op):
            return binary(op, values[0], values[1], scalar)
        case ir.Select():
            return values[1] if values[0] else values[2]
        case ir.Cast():
            return cast(values[0], scalar)
        case ir.BuiltinCall(builtin=name, arguments=arguments):
            return _call(name, values, scalar_of(arguments[0].type), scalar)
        case _:
            assert_never(expr)


def cast(value: Value, scalar: Scalar) -> Value:
    """Return a value converted to a type by WGSL's rules."""
    if scalar is Scalar.F32:
        return float(value)
    if isinstance(value, float):
        return _SATURATING[scalar](value)
    return wrap(int(value), scalar)


def _unary(op: str, value: Value, scalar: Scalar) -> Value:
    if op == "not":
        return not value
    if scalar is Scalar.F32:
        return -value
    return wrap(-int(value) if op == "-" else ~int(value), scalar)


def binary(op: str, left: Value, right: Value, scalar: Scalar) -> Value:
    """Return `left op right`, whose result is of type `scalar`."""
    if op in _COMPARISONS:
        return _COMPARISONS[op](left, right)
    if scalar is Scalar.F32:
        try:
            return as_f32(_FLOAT_OPS[op](float(left), float(right)))
        except (ArithmeticError, ValueError):
            raise NotFiniteError from None
    return wrap(integer_op(op, int(left), int(right)), scalar)


def integer_op(op: str, left: int, right: int) -> int:
    """Return the exact result of an integer operation, before it wraps."""
    return _INTEGER_OPS[op](left, right)


_COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
}

_FLOAT_OPS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
}

_INTEGER_OPS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "/": hostmath.idiv,
    "%": hostmath.irem,
    "<<": hostmath.shift_left,
    ">>": hostmath.shift_right,
}


def _call(name: str, values: list[Value], given: Scalar, scalar: Scalar) -> Value:
    """Return the value of a built-in, whose first argument is of type `given`."""
    try:
        value = BUILTINS[name].value(given, values)
    except (ArithmeticError, ValueError):
        raise NotFiniteError from None
    if scalar is Scalar.F32:
        return as_f32(value)
    return bool(value) if scalar is Scalar.BOOL else wrap(int(value), scalar)
