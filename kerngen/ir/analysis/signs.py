"""Signs of integer expressions, and remainders that are inside of an axis."""

from __future__ import annotations

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form, as_literal
from kerngen.ir.analysis.extremes import starts_from_zero
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar


def is_natural(expr: ir.Expr, *, wraps: bool) -> bool:
    """Whether an integer's form and type show that it is at least 0.

    With `wraps`, sums and products may overflow, so that `i + 1` may be negative.
    """
    match expr:
        case ir.Constant(value=value) | ir.ConstRef(value=value):
            return expr.type.is_integer and value >= 0
        case ir.IndexValue() | ir.DimValue():
            return True
        case ir.UniformValue() | ir.Swizzle() | ir.Part():
            return expr.type is Scalar.U32
        case ir.Binary(op="+" | "*", left=left, right=right):
            return not wraps and all(is_natural(e, wraps=wraps) for e in (left, right))
        case ir.Binary(op="/" | "%", left=left, right=right):
            return all(is_natural(side, wraps=wraps) for side in (left, right))
        case _:
            return False


def may_be_negative(expr: ir.Expr) -> bool:
    """Whether an integer may be negative in some call, if no arithmetic overflows.

    Lengths are taken to be 1 or more, as nothing is read from an empty axis.  Of reads of a
    let the answer is False.
    """
    if expr.type is not Scalar.I32:
        return False
    form = affine_form(expr)
    if form is not None and starts_from_zero(form):
        return False
    match expr:
        case ir.Constant(value=value) | ir.ConstRef(value=value):
            return value < 0
        case ir.IndexValue() | ir.DimValue():
            return False
        case ir.Load(tensor=tensor):
            # Of a let nothing is reported: the kernel's author sees how it is computed.
            return tensor.role is not ir.Role.LET
        case ir.Cast(operand=operand):
            return not operand.type.is_integer or may_be_negative(operand)
        case ir.Binary(op="+" | "*" | "/" | "|" | "^", left=left, right=right):
            return may_be_negative(left) or may_be_negative(right)
        case ir.Binary(op="%" | ">>" | "<<", left=left):
            return may_be_negative(left)
        case ir.Binary(op="&", left=left, right=right):
            return may_be_negative(left) and may_be_negative(right)
        case ir.Select(then=then, otherwise=otherwise):
            return may_be_negative(then) or may_be_negative(otherwise)
        case ir.BuiltinCall(builtin=name, arguments=arguments) if name in BUILTINS:
            return BUILTINS[name].may_be_negative([*map(may_be_negative, arguments)])
        case _:
            return True


def lies_within(expr: ir.Expr, extent: ir.Extent) -> bool:
    """Whether an integer is a remainder by an axis's length, or by less: `mod(i - 1, n)`.

    Then it is inside of the axis, if that is not empty.
    """
    match expr:
        case ir.BuiltinCall(builtin="mod", arguments=(_, divisor)):
            pass
        # The sign of `%` is that of its left side, which must not be negative.
        case ir.Binary(op="%", left=ir.IndexValue() | ir.DimValue(), right=divisor):
            pass
        case _:
            return False
    if isinstance(extent, str):
        return divisor == ir.DimValue(extent)
    literal = as_literal(divisor)
    return literal is not None and 0 < literal <= extent
