"""Integers of 8 and 4 bits as they are written: of the value, the lower bits are kept."""

from __future__ import annotations

from kerngen.ir.fold import fold
from kerngen.ir.nodes import Binary, Constant, Expr, Tensor
from kerngen.ir.types import Scalar


def narrowed(value: Expr, target: Tensor) -> Expr:
    """
    Return the value that a read gives after a write to a narrow tensor.

    Before:  y[i] = x[i];             with y of u4; then of i4
    After:   y[i] = x[i] & 15;        y[i] = x[i] << 28 >> 28;
    """
    if target.narrow is None:
        return value
    bits = target.narrow.bits
    if value.type is Scalar.U32:
        return fold(
            Binary("&", value, Constant((1 << bits) - 1, Scalar.U32), value.type)
        )
    above = Constant(32 - bits, Scalar.U32)
    up = fold(Binary("<<", value, above, value.type))
    return fold(Binary(">>", up, above, value.type))
