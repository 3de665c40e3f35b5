"""Affine forms: integer expressions as a sum of indices with fixed coefficients.

    2 * (i + 1) - j + n     offset 2 + n, coefficients i: 2, j: -1

A form holds modulo 2^32, as the arithmetic of i32 and u32 does.  So casts between the two
are left out, and where the sum is inside of an axis, it is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never, final

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.types import Scalar
from kerngen.plan.hostmath import wrap_i32

_RING: Final[Mapping[ir.BinaryOp, Callable[[int, int], int]]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
}
"""The operators whose results are right modulo 2^32, even if operands have overflowed."""

_QUOTIENTS: Final = frozenset[ir.BinaryOp](("/", "%"))
_NEUTRAL: Final[Mapping[ir.BinaryOp, int]] = {"+": 0, "*": 1}
"""The operand of each operator that changes nothing."""

_ZERO: Final = ir.Constant(0, Scalar.I32)
_ONE: Final = ir.Constant(1, Scalar.I32)


@final
@dataclass(frozen=True)
class AffineForm:
    """An affine form: `offset` plus, for each index in `terms`, a coefficient times the index.

    The offset and the coefficients contain only constants, dims and integer parameters; no
    coefficient is the literal 0.
    """

    offset: ir.Expr
    terms: Mapping[ir.Index, ir.Expr] = field(default_factory=dict[ir.Index, ir.Expr])

    def coefficient(self, index: ir.Index) -> int | None:
        """Return an index's coefficient: 0 if the form lacks it, None if it is no literal."""
        return as_literal(self.terms[index]) if index in self.terms else 0


def affine_form(expr: ir.Expr) -> AffineForm | None:
    """Return an integer expression as an affine form, or None if it is not affine."""
    if is_fixed(expr):
        return AffineForm(expr)
    match expr:
        case ir.IndexValue(index=index):
            return AffineForm(_ZERO, {index: _ONE})
        case ir.Unary(op="-", operand=operand):
            return _scaled(ir.Constant(-1, Scalar.I32), affine_form(operand))
        # Sums and products of i32 and u32 have the same bits.
        case ir.Cast(operand=operand) if operand.type.is_integer:
            return affine_form(operand)
        case ir.Binary(op="+" | "-" as op, left=left, right=right):
            return _combined(op, affine_form(left), affine_form(right))
        case ir.Binary(op="*", left=left, right=right) if is_fixed(right):
            return _scaled(right, affine_form(left))
        case ir.Binary(op="*", left=left, right=right) if is_fixed(left):
            return _scaled(left, affine_form(right))
        case _:
            return None


def subscript_form(subscript: ir.Subscript) -> AffineForm | None:
    """Return the affine form of a subscript, or None for a clamped one."""
    match subscript:
        case ir.Clamped():
            return None
        case ir.IndexValue(index=index):
            return AffineForm(_ZERO, {index: _ONE})
        case ir.Affine(value):
            form = affine_form(value)
            assert form is not None, "checked where it was made"
            return form
        case _:
            assert_never(subscript)


def is_fixed(expr: ir.Expr) -> bool:
    """Whether an integer is the same for all elements, and the host can compute it."""
    match expr:
        case ir.Constant() | ir.ConstRef() | ir.DimValue():
            return expr.type.is_integer
        case ir.UniformValue(path=path):
            # An index may lead to the part, and the checks know whole scalars alone.
            return expr.type.is_integer and not path
        case ir.Unary(op=op, operand=operand):
            return op == "-" and is_fixed(operand)
        case ir.Cast(operand=operand, type=type_):
            return type_.is_integer and is_fixed(operand)
        case ir.Binary(op=op, left=left, right=right):
            known = op in _RING or op in _QUOTIENTS
            return known and is_fixed(left) and is_fixed(right)
        case ir.BuiltinCall(builtin=name, arguments=arguments):
            return name in TRUNCATING and all(map(is_fixed, arguments))
        case _:
            # The host can't compute anything else: such a subscript is clamped.
            return False


def as_literal(expr: ir.Expr) -> int | None:
    """Return the value of a literal or `const` as a signed integer, or None for others."""
    if isinstance(expr, ir.Constant | ir.ConstRef) and expr.type.is_integer:
        return wrap_i32(int(expr.value))
    return None


def _combined(
    op: ir.BinaryOp, left: AffineForm | None, right: AffineForm | None
) -> AffineForm | None:
    if left is None or right is None:
        return None
    terms = dict(left.terms)
    for index, coefficient in right.terms.items():
        terms[index] = _simple(op, terms.get(index, _ZERO), coefficient)
    return AffineForm(_simple(op, left.offset, right.offset), _present(terms))


def _scaled(by: ir.Expr, form: AffineForm | None) -> AffineForm | None:
    if form is None:
        return None
    terms = {index: _simple("*", by, c) for index, c in form.terms.items()}
    return AffineForm(_simple("*", by, form.offset), _present(terms))


def _present(terms: Mapping[ir.Index, ir.Expr]) -> dict[ir.Index, ir.Expr]:
    return {index: c for index, c in terms.items() if as_literal(c) != 0}


def _simple(op: ir.BinaryOp, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return `left op right`, simplified: `x + 0` is x, `x * 0` is 0, `x * -1` is -x."""
    first, second = as_literal(left), as_literal(right)
    if first is not None and second is not None:
        return ir.Constant(wrap_i32(_RING[op](first, second)), Scalar.I32)
    if op in _NEUTRAL and first == _NEUTRAL[op]:
        return right
    if second == _NEUTRAL.get(op, 0):
        return left
    if op == "*" and 0 in (first, second):
        return _ZERO
    if first == (-1 if op == "*" else 0):
        return ir.Unary("-", right, Scalar.I32)
    if op == "*" and second == -1:
        return ir.Unary("-", left, Scalar.I32)
    return ir.Binary(op, left, right, Scalar.I32)
