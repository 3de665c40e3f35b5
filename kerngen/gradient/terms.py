"""Sums of products: the normal form of adjoints.

A term is a coefficient times factors to powers, under conditions, summed over indices:
`-1/2 dy[i, j] g[j] r[i]^3`, over j, where `j <= i`.  Factors are expressions of the
forward program, and stay as they are: `x[i, j] - mean[i]` is one factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite
from typing import Final, TypeAlias, final

from kerngen.gradient.indices import free_indices, indices_in
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value

Factors: TypeAlias = Mapping[ir.Expr, Fraction]
"""The factors of a product, each with its exponent: `x / sqrt(s)` is {x: 1, s: -1/2}."""

ONE: Final = Fraction(1)
HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True)
class Term:
    """A product of factors, under `conditions`, summed over the indices in `bound`.

    `solved` are those of the conditions that the program does not have: they are false where
    a subscript has no solution, as `(s - u) % 2 == 0`.
    """

    coefficient: Fraction = ONE
    factors: Factors = field(default_factory=dict[ir.Expr, Fraction])
    conditions: tuple[ir.Expr, ...] = ()
    bound: tuple[ir.Index, ...] = ()
    solved: frozenset[ir.Expr] = frozenset()

    def times(self, other: Term) -> Term:
        """Return the product with another term, which has neither sum nor condition."""
        factors = joined(self.factors, other.factors)
        coefficient = self.coefficient * other.coefficient
        return Term(coefficient, factors, self.conditions, self.bound, self.solved)

    def to(self, power: Fraction) -> Term:
        """Return the term to a power; a fraction as power drops the coefficient."""
        coefficient = self.coefficient ** int(power) if power.denominator == 1 else ONE
        factors = {atom: e * power for atom, e in self.factors.items()}
        return Term(coefficient, factors)

    def under(self, *conditions: ir.Expr) -> Term:
        """Return the term under further conditions."""
        added = (c for c in conditions if c not in self.conditions)
        return replace(self, conditions=(*self.conditions, *dict.fromkeys(added)))

    def over(self, indices: tuple[ir.Index, ...]) -> Term:
        """Return the term summed over further indices."""
        return replace(self, bound=(*self.bound, *indices))

    @property
    def key(self) -> object:
        """The part that like terms have in common: all but the coefficient."""
        parts = frozenset(self.factors.items()), frozenset(self.conditions)
        return (*parts, frozenset(self.bound))


def joined(left: Factors, right: Factors) -> dict[ir.Expr, Fraction]:
    """Return the factors of a product."""
    factors = dict(left)
    for atom, exponent in right.items():
        total = exponent + factors.pop(atom, Fraction(0))
        if total:
            factors[atom] = total
    return factors


def added_up(terms: Iterable[Term]) -> list[Term]:
    """Return a sum with like terms added together."""
    found: dict[object, Term] = {}
    for term in terms:
        other = found.get(term.key)
        coefficient = term.coefficient + (other.coefficient if other else 0)
        found[term.key] = replace(other or term, coefficient=coefficient)
    return [term for term in found.values() if term.coefficient]


def product_of(expr: ir.Expr) -> Term:
    """Return an expression as one product; anything else becomes a factor.

    `exp(x - top) / total` is exp(x - top)^1 total^-1.
    """
    match expr:
        case ir.Constant(value=value) if isfinite(value):
            return Term(exact(value))
        case ir.Binary(op="*", left=left, right=right) if _scales(left, right):
            return product_of(left).times(product_of(right))
        case ir.Binary(op="/", left=left, right=right) if right.type is Scalar.F32:
            below = product_of(right)
            if below.coefficient:
                return product_of(left).times(below.to(-ONE))
        case ir.Unary(op="-", operand=operand):
            return product_of(operand).times(Term(-ONE))
        case ir.BuiltinCall(builtin="sqrt", arguments=(inside,), type=Scalar.F32):
            return _root(inside, HALF)
        case ir.BuiltinCall(
            builtin="inverseSqrt", arguments=(inside,), type=Scalar.F32
        ):
            return _root(inside, -HALF)
        case _:
            pass
    return Term(factors={expr: ONE})


def _scales(left: ir.Expr, right: ir.Expr) -> bool:
    """Whether a product is of a number and a number, vector or matrix."""
    return Scalar.F32 in {left.type, right.type}


def _root(inside: ir.Expr, power: Fraction) -> Term:
    """Return a root as a power of a single factor; `sqrt(x * x)` is |x|, so it stays a root."""
    whole = product_of(inside)
    (exponent,) = whole.factors.values() if len(whole.factors) == 1 else (None,)
    if whole.coefficient == 1 and exponent == 1:
        return whole.to(power)
    return Term(factors={inside: power})


def exact(value: float) -> Fraction:
    """Return a finite literal as an exact fraction: 0.044715 is 44715 / 1000000."""
    return Fraction(repr(float(value)))


def sum_of(expr: ir.Expr) -> list[Term]:
    """Return an expression multiplied out into a sum of products."""
    match expr:
        case ir.Binary(op="+" | "-" as op, left=left, right=right) if is_additive(expr):
            sign = Term(ONE if op == "+" else -ONE)
            return [*sum_of(left), *(term.times(sign) for term in sum_of(right))]
        case ir.Unary(op="-", operand=operand):
            return [term.times(Term(-ONE)) for term in sum_of(operand)]
        case ir.Binary(op="*", left=left, right=right) if _scales(left, right):
            others = sum_of(right)
            return [one.times(other) for one in sum_of(left) for other in others]
        case ir.Binary(op="/", left=left, right=right) if right.type is Scalar.F32:
            below = product_of(right)
            if below.coefficient:
                return [term.times(below.to(-ONE)) for term in sum_of(left)]
        case _:
            pass
    return [product_of(expr)]


def is_additive(expr: ir.Expr) -> bool:
    """Whether a factor is itself a sum."""
    if not isinstance(expr, ir.Binary) or expr.op not in {"+", "-"}:
        return False
    return expr.left.type == expr.right.type


def indices_of(factors: Iterable[ir.Expr]) -> frozenset[ir.Index]:
    """Return all indices in some factors."""
    return frozenset[ir.Index]().union(*map(free_indices, factors))


def substituted(expr: ir.Expr, by: Mapping[ir.Index, ir.Expr]) -> ir.Expr:
    """Return an expression with indices replaced.

    Subscripts that are then no bare indices are `Clamped` for now; `integers.subscripts`
    normalises them in the end.
    """
    if by.keys().isdisjoint(indices_in(expr)):
        return expr
    match expr:
        case ir.IndexValue(index=index):
            return by.get(index, expr)
        case ir.Load(subscripts=subscripts, path=path):
            moved = tuple(_moved(each, by) for each in subscripts)
            path = with_places(path, lambda place: substituted(place, by))
            return replace(expr, subscripts=moved, path=path)
        case ir.UniformValue(path=path) if path:
            path = with_places(path, lambda place: substituted(place, by))
            return replace(expr, path=path)
        case ir.Part(operand=operand, at=at):
            return _moved_part(expr, substituted(operand, by), _moved(at.place, by))
        case ir.Reduce(indices=indices):
            renamed = tuple(
                each.index
                for each in (by.get(index, ir.IndexValue(index)) for index in indices)
                if isinstance(each, ir.IndexValue)
            )
            inner = map_children(expr, lambda child: substituted(child, by))
            return (
                replace(inner, indices=renamed)
                if isinstance(inner, ir.Reduce)
                else inner
            )
        case _:
            return map_children(expr, lambda child: substituted(child, by))


def _moved_part(part: ir.Part, operand: ir.Expr, place: ir.Subscript) -> ir.Expr:
    """Return a part at another place: `v[0]` is `v.x`."""
    number = as_literal(subscript_value(place))
    if number is not None and isinstance(part.type, Scalar):
        return ir.Swizzle(operand, "xyzw"[number], part.type)
    if number is not None:
        place = ir.Affine(subscript_value(place), str(number))
    return replace(part, operand=operand, at=replace(part.at, place=place))


def _moved(subscript: ir.Subscript, by: Mapping[ir.Index, ir.Expr]) -> ir.Subscript:
    value = substituted(subscript_value(subscript), by)
    return as_subscript(value)


def as_subscript(value: ir.Expr) -> ir.Subscript:
    """Return a value as a subscript, not normalised yet."""
    return value if isinstance(value, ir.IndexValue) else ir.Clamped(value)


def with_places(path: ir.Path, f: Callable[[ir.Expr], ir.Expr]) -> ir.Path:
    """Return a path with `f` applied to each subscript in it."""
    return tuple(
        (
            replace(step, place=as_subscript(f(subscript_value(step.place))))
            if isinstance(step, ir.At)
            else step
        )
        for step in path
    )
