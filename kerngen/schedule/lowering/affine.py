"""Affine subscripts in u32 arithmetic, which is exact for results within the axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, as_literal
from kerngen.ir.types import Scalar
from kerngen.plan.hostmath import wrap_u32
from kerngen.schedule.lowering.values import Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer


def lower_affine(to: Lowerer, form: AffineForm) -> Value:
    """Return an affine form as a u32, or as four; positive terms come first."""
    added: list[t.Expr] = []
    taken: list[t.Expr] = []
    for index, coefficient in form.terms.items():
        factor, is_negative = _magnitude(coefficient)
        term = index_position(to, index) * lower_fixed(to, factor)
        (taken if is_negative else added).append(term)
    offset, is_negative = _magnitude(form.offset)
    if as_literal(offset) != 0:
        (taken if is_negative else added).append(lower_fixed(to, offset))
    total: t.Expr = t.ZERO
    for term in added:
        total = total + term
    for term in taken:
        total = total - term
    return Value(total, wide=to.vector in form.terms)


def index_position(to: Lowerer, index: ir.Index) -> t.Expr:
    """Return an index as a u32; the vector index as its four values."""
    at = to.at[index]
    if index != to.vector:
        return at
    steps = t.Call("vec4u", tuple(map(t.u32, range(4))))
    return t.Binary("+", t.call("vec4u", at), steps)


def lower_fixed(to: Lowerer, expr: ir.Expr) -> t.Expr:
    """Return an integer that is the same for all elements, modulo 2^32."""
    match expr:
        case ir.Constant(value=value):
            return t.u32(wrap_u32(int(value)))
        case ir.DimValue(name=name):
            return to.shader.uniform(name)
        case ir.UniformValue(type=Scalar.U32):
            return to.lower(expr).expr
        case ir.Unary(op="-", operand=operand):
            return t.ZERO - lower_fixed(to, operand)
        case ir.Cast(operand=operand) if operand.type.is_integer:
            return lower_fixed(to, operand)
        case ir.Binary(op="+", left=left, right=right):
            return lower_fixed(to, left) + lower_fixed(to, right)
        case ir.Binary(op="-", left=left, right=right):
            return lower_fixed(to, left) - lower_fixed(to, right)
        case ir.Binary(op="*", left=left, right=right):
            return lower_fixed(to, left) * lower_fixed(to, right)
        case ir.Binary(
            op="/", left=ir.DimValue() as dim, right=ir.Constant(value=value) as divisor
        ) if (value > 0):
            return lower_fixed(to, dim) // lower_fixed(to, divisor)
        case _:
            lowered = to.lower(expr).expr
            return lowered if expr.type is Scalar.U32 else t.call("u32", lowered)


def _magnitude(expr: ir.Expr) -> tuple[ir.Expr, bool]:
    """Return an integer without its sign, and whether it had one that shows."""
    match expr:
        case ir.Unary(op="-", operand=operand):
            return operand, True
        case ir.Constant(value=value, type=Scalar.I32) if value < 0:
            return ir.Constant(-value, Scalar.I32), True
        case _:
            return expr, False
