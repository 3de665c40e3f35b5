"""Polynomials over indices and lengths, the normal form of integer expressions.

`(i + edge) - u * skip` is `{(i,): 1, (edge,): 1, (skip, u): -1}`.  An expression that is no
sum, difference or product, as `i / 2` or `ids[t]`, is a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias, final

from kerngen.gradient.indices import free_indices
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal, is_fixed
from kerngen.ir.dump import dump_expr
from kerngen.ir.types import Scalar


@final
class PolyVariable:
    """An expression used as a variable of polynomials; its hash is computed once."""

    __slots__ = ("_hash", "expr", "order")

    def __init__(self, expr: ir.Expr) -> None:
        self.expr: Final = expr
        self.order: Final = dump_expr(expr)
        self._hash: Final = hash(self.order)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PolyVariable) and self.expr == other.expr


Monomial: TypeAlias = tuple[PolyVariable, ...]
"""A product of variables in a fixed order, each as often as its power; () is the number 1."""
Form: TypeAlias = Mapping[Monomial, int]
"""A polynomial: each product with its factor, which is never 0."""

_I32: Final = Scalar.I32


def number(value: int) -> ir.Constant:
    """Return an i32 literal."""
    return ir.Constant(value, _I32)


def length(extent: ir.Extent) -> ir.Expr:
    """Return the length of an axis as an expression."""
    return number(extent) if isinstance(extent, int) else ir.DimValue(extent)


@lru_cache(4096)
def variable_of(expr: ir.Expr) -> PolyVariable:
    """Return the variable for an expression."""
    return PolyVariable(expr)


@lru_cache(4096)
def form_of(expr: ir.Expr) -> Form:
    """Return an integer expression as a polynomial."""
    literal = as_literal(expr)
    if isinstance(expr, ir.Constant) and expr.type is Scalar.U32:
        literal = int(expr.value)  # not as an i32, which 4294967295 would be -1 of
    if literal is not None:
        return {(): literal} if literal else {}
    match expr:
        case ir.Unary(op="-", operand=operand, type=Scalar.I32):
            return scaled(form_of(operand), -1)
        case ir.Cast(operand=operand, type=Scalar.I32) if operand.type.is_integer:
            return form_of(operand)
        case ir.Cast(operand=operand, type=Scalar.U32) if is_fixed(operand):
            return form_of(operand)
        case ir.Binary(
            op="+" | "-" | "*" as op, left=left, right=right
        ) if expr.type is _I32 or is_fixed(expr):
            return combined(op, form_of(left), form_of(right))
        case ir.Binary(
            op="/" | "%", left=left, right=right
        ) if expr.type is _I32 or is_fixed(expr):
            return _quotient(expr, form_of(left), form_of(right))
        case _:
            return {(variable_of(expr),): 1}


def _quotient(expr: ir.Binary, above: Form, below: Form) -> Form:
    """Return a quotient or remainder as a variable, with its operands in canonical form."""
    if below == {(): 1}:
        return above if expr.op == "/" else {}
    operands = value_of(above), value_of(below)
    return {(variable_of(ir.Binary(expr.op, *operands, _I32)),): 1}


def combined(op: str, left: Form, right: Form) -> Form:
    """Return the sum, difference or product of two polynomials."""
    if op == "*":
        total: Form = {}
        for monomial, factor in right.items():
            total = combined("+", total, _times(left, monomial, factor))
        return total
    sign = 1 if op == "+" else -1
    found = dict(left)
    for monomial, factor in right.items():
        found[monomial] = found.get(monomial, 0) + sign * factor
    return {monomial: factor for monomial, factor in found.items() if factor}


def _times(form: Form, by: Monomial, factor: int) -> Form:
    return {
        tuple(sorted((*monomial, *by), key=_order)) if by else monomial: factor * own
        for monomial, own in form.items()
    }


def _order(variable: PolyVariable) -> str:
    return variable.order


def scaled(form: Form, factor: int) -> Form:
    """Return a polynomial times a factor."""
    return {monomial: factor * own for monomial, own in form.items() if factor}


def plus(form: Form, value: int) -> Form:
    """Return a polynomial plus a number."""
    return combined("+", form, {(): value} if value else {})


def value_of(form: Form) -> ir.Expr:
    """Return a polynomial as an expression, positive terms first: `i + 1 - u`."""
    result: ir.Expr | None = None
    for monomial, factor in sorted(form.items(), key=_place):
        part = _product(monomial, abs(factor))
        if result is None:
            result = part if factor > 0 else ir.Unary("-", part, _I32)
        else:
            result = ir.Binary("+" if factor > 0 else "-", result, part, _I32)
    return number(0) if result is None else _negated(result)


def _negated(expr: ir.Expr) -> ir.Expr:
    """Return `-3` as a literal."""
    literal = as_literal(expr.operand) if isinstance(expr, ir.Unary) else None
    return expr if literal is None else number(-literal)


def _place(item: tuple[Monomial, int]) -> tuple[bool, bool]:
    monomial, factor = item
    return factor < 0, not monomial


def _product(monomial: Monomial, factor: int) -> ir.Expr:
    values = [_signed(variable.expr) for variable in monomial]
    ordered = sorted(values, key=lambda value: not isinstance(value, ir.IndexValue))
    if factor != 1 or not ordered:
        ordered.insert(0, number(factor))
    result = ordered[0]
    for part in ordered[1:]:
        result = ir.Binary("*", result, part, _I32)
    return result


def _signed(value: ir.Expr) -> ir.Expr:
    return value if value.type is _I32 else ir.Cast(value, _I32)


def variables(form: Form) -> set[ir.Expr]:
    """Return the variables of a polynomial."""
    return {variable.expr for monomial in form for variable in monomial}


def as_variable(expr: ir.Expr) -> ir.Expr | None:
    """Return the variable if an expression is one by itself, else None."""
    match [*form_of(expr).items()]:
        case [((variable,), 1)]:
            return variable.expr
        case _:
            return None


def coefficient(form: Form, of: ir.Expr) -> tuple[Form, Form] | None:
    """Return (g, r) of a form `g * of + r`; None if it is not linear in `of`."""
    variable = variable_of(of)
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, own in form.items():
        if variable not in monomial:
            rest[monomial] = own
            continue
        left = list(monomial)
        left.remove(variable)
        if variable in left:
            return None
        factor[tuple(left)] = own
    return factor, rest


def divided(form: Form, by: Form) -> tuple[Form, Form]:
    """Return (q, r) of a form `q * by + r`, term by term, for a divisor of one term."""
    if len(by) != 1:
        return {}, form
    ((below, factor),) = by.items()
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, own in form.items():
        left = _without(monomial, below)
        count, over = divmod(own, factor) if left is not None else (0, own)
        if left is not None and count:
            whole[left] = count
        if over:
            rest[monomial] = over
    return whole, rest


def _without(monomial: Monomial, below: Monomial) -> Monomial | None:
    """Return a product without some of its factors, None if it has not all of them."""
    left = list(monomial)
    for variable in below:
        if variable not in left:
            return None
        left.remove(variable)
    return tuple(left)


def mentions(expr: ir.Expr, indices: frozenset[ir.Index]) -> bool:
    """Whether an expression uses any of these indices."""
    return not indices.isdisjoint(free_indices(expr))
