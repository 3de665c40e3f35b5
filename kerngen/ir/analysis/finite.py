"""Proofs that a float is finite, by bounds of what it is computed from."""

from __future__ import annotations

import math
from typing import Final

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import F32_MAX, Scalar, scalar_of

_LARGEST: Final = {
    Scalar.I32: 2.0**31,
    Scalar.U32: 2.0**32,
    Scalar.BOOL: 1.0,
    Scalar.F32: math.inf,
}


def is_finite(expr: ir.Expr) -> bool:
    """Whether a float is proven to be neither infinite nor NaN, whatever the arguments are."""
    # Half of the largest f32 leaves room for the rounding of all operations.
    return _largest(expr) < F32_MAX / 2


def _largest(expr: ir.Expr) -> float:
    """Return a bound of the absolute value; infinity if none is known."""
    match expr:
        case ir.Constant(value=value) | ir.ConstRef(value=value):
            return abs(float(value))
        case ir.Cast(operand=operand, is_halved=False):
            return min(_largest(operand), _LARGEST[scalar_of(operand.type)])
        case ir.Unary(op="-", operand=operand):
            return _largest(operand)
        case ir.Binary(op="+" | "-", left=left, right=right):
            return _largest(left) + _largest(right)
        case ir.Binary(op="*", left=left, right=right):
            sides = _largest(left), _largest(right)
            # 0 times what may be infinite may be NaN.
            return math.inf if math.inf in sides else math.prod(sides)
        case ir.Binary(op="/", left=left, right=ir.Constant(value=divisor)) if divisor:
            return _largest(left) / abs(float(divisor))
        case ir.Select(then=then, otherwise=otherwise):
            return max(_largest(then), _largest(otherwise))
        case ir.BuiltinCall(builtin=name, arguments=(argument,)) if name in BUILTINS:
            bound = BUILTINS[name].largest
            return bound(_largest(argument)) if bound else math.inf
        case _:
            return math.inf
