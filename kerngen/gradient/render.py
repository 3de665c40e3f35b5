"""From sums of products back to expressions: factor out, and merge conditions.

Terms:       dy[i] weight[i]      -1 along[i] weight[i]
Expression:  weight[i] * (dy[i] - along[i])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from kerngen.gradient.composites import (
    ZERO,
    binary,
    direction_of,
    is_single,
    placed_along,
    zero_of,
)
from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import all_hold, negated
from kerngen.gradient.simplify import common, split, split_under_conditions
from kerngen.gradient.terms import HALF, ONE, Factors, Term
from kerngen.ir import nodes as ir
from kerngen.ir.types import Matrix, Scalar

_F32: Final = Scalar.F32
_MOST_REPEATED: Final = 4
"""Up to this power a factor is written as often; `pow` is less accurate, and slower."""


def rendered(terms: list[Term]) -> ir.Expr:
    """Return a sum of terms as an expression."""
    # Factors that the terms share, taken out of the branches that some terms are in.
    shared = _shared(terms)
    if shared.factors:
        rest = rendered([term.times(shared.to(-ONE)) for term in terms])
        return _product(shared, (rest,))
    # Terms under the same conditions share one `if`; those without any come first.
    groups: dict[tuple[ir.Expr, ...], list[Term]] = {}
    for term in terms:
        before = split(term)[0].conditions
        kept = tuple(c for c in term.conditions if c not in before)
        groups.setdefault(before, []).append(replace(term, conditions=kept))
    in_order = sorted(groups.items(), key=lambda group: bool(group[0]))
    parts = [(c, _factored(each)) for c, each in in_order]
    result: ir.Expr | None = None
    for value in _chosen(parts):
        result = value if result is None else _sum(result, value)
    return ZERO if result is None else result


def _shared(terms: list[Term]) -> Term:
    """Return the factors that all terms share, if some terms have conditions and some none.

    A term without conditions is computed in any case, so taking its factors out of the
    branches of the others computes nothing new.
    """
    guarded = [bool(split(term)[0].conditions) for term in terms]
    if all(guarded) or not any(guarded):
        return Term()
    return Term(factors=_plain(common(terms)))


def _chosen(parts: list[tuple[tuple[ir.Expr, ...], ir.Expr]]) -> Iterable[ir.Expr]:
    """Yield each value under its conditions; two under opposite conditions as one `if`.

    Before:  if c { a } else { 0.0 }      if not c { b } else { 0.0 }
    After:   if c { a } else { b }
    """
    waiting = list(parts)
    while waiting:
        conditions, value = waiting.pop(0)
        if not conditions:
            yield value
            continue
        for place, (others, other) in enumerate(waiting):
            own = [c for c in conditions if negated(c) in others]
            rest = {c for c in conditions if c not in own}
            same = rest == {c for c in others if negated(c) not in own}
            if len(own) == 1 and same:
                del waiting[place]
                both = ir.Select(own[0], value, other, value.type)
                kept = tuple(c for c in conditions if c in rest)
                yield _where(kept, both)
                break
        else:
            yield _where(conditions, value)


def _where(conditions: tuple[ir.Expr, ...], value: ir.Expr) -> ir.Expr:
    if not conditions:
        return value
    if isinstance(value, ir.Unary):
        return ir.Unary("-", _where(conditions, value.operand), value.type)
    return ir.Select(all_hold(conditions), value, zero_of(value.type), value.type)


def _sum(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if isinstance(right, ir.Unary) and right.op == "-":
        return binary("-", left, right.operand)
    return binary("+", left, right)


def _factored(terms: list[Term]) -> ir.Expr:
    """Return a sum with common factors taken out: `weight * (dweight - along)`."""
    if len(terms) == 1:
        return _term(terms[0])
    shared = Term(factors=_plain(common(terms)))
    if all(abs(term.coefficient) == abs(terms[0].coefficient) for term in terms):
        shared = replace(shared, coefficient=abs(terms[0].coefficient))
    rest = [term.times(shared.to(-ONE)) for term in terms]
    # What is added comes first, so that nothing begins with a minus.
    rest.sort(key=lambda term: term.coefficient < 0)
    total = _term(rest[0])
    for term in rest[1:]:
        total = _sum(total, _term(term))
    if not shared.factors and shared.coefficient == 1:
        return total
    return _product(shared, (total,))


def _plain(factors: Factors) -> dict[ir.Expr, Fraction]:
    """Return factors without choices of numbers, `if x > 0.0 { 1.0 } else { 0.0 }`."""
    return {a: e for a, e in factors.items() if not is_choice(a)}


def _term(term: Term) -> ir.Expr:
    """Return a term as an expression: its factors before the sum, times the sum."""
    outside, inside = split_under_conditions(term)
    if not term.bound:
        return _product(outside, ())
    inside = _guarded(inside)
    condition = all_hold(inside.conditions) if inside.conditions else None
    body = _product(replace(inside, conditions=()), ())
    reduce = ir.Reduce("sum", term.bound, body, body.type, condition)
    return _product(replace(outside, conditions=()), (reduce,))


def _guarded(inside: Term) -> Term:
    """Return a sum of products with its condition moved to the factor that has its indices.

    Before:  sum[j when j <= i] a[i, j] * x[j, p]
    After:   sum[j] (if j <= i { a[i, j] } else { 0.0 }) * x[j, p]

    `gemm` runs the latter, as it reads each factor once per tile, by its own indices.  Only
    conditions of solved subscripts are moved.  One of the program stays around the product:
    a term that it leaves out must not be evaluated, as 0 times infinity is NaN.
    """
    if len(inside.factors) < 2 or not inside.solved.issuperset(inside.conditions):
        return inside
    if not inside.conditions:
        return inside
    needed = frozenset[ir.Index]().union(*map(free_indices, inside.conditions))
    for atom, exponent in inside.factors.items():
        others = (a for a in inside.factors if a != atom)
        if exponent == 1 and needed <= free_indices(atom) and all(map(is_bare, others)):
            guarded = _where(inside.conditions, atom)
            factors = {
                guarded if a == atom else a: e for a, e in inside.factors.items()
            }
            return replace(inside, factors=factors, conditions=())
    return inside


def is_bare(expr: ir.Expr) -> bool:
    """Whether a factor is read at bare indices: inside of its axes on any condition."""
    if isinstance(expr, ir.Swizzle):
        return is_bare(expr.operand)
    return isinstance(expr, ir.Load) and all(
        isinstance(subscript, ir.IndexValue) for subscript in expr.subscripts
    )


def is_choice(expr: ir.Expr) -> bool:
    """Whether a factor is a choice of numbers, as the derivative of a kink is."""
    if not isinstance(expr, ir.Select):
        return False
    sides = (expr.then, expr.otherwise)
    return all(isinstance(side, ir.Constant) or is_choice(side) for side in sides)


def _product(term: Term, also: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return a term's factors, and those in `also`, as one product or fraction."""
    choices = [a for a, e in term.factors.items() if e == 1 and is_choice(a)]
    if choices:
        # Chosen, never multiplied by 0: NaN times 0 is NaN.
        rest = {a: e for a, e in term.factors.items() if a != choices[0]}
        return _distributed(choices[0], replace(term, factors=rest), also)
    scale, direction = direction_of(term)
    if is_single(direction) and term.factors[direction] == 1:
        # Before it is divided, and not after: 0 / 0 is NaN.
        return placed_along(_product(scale, also), direction)
    above = [p for a, e in term.factors.items() if e > 0 for p in _power(a, e)]
    below = [p for a, e in term.factors.items() if e < 0 for p in _power(a, -e)]
    value, is_negative = abs(term.coefficient), term.coefficient < 0
    parts = [*above, *also]
    if value.numerator == 1 and value.denominator > 1 and _is_awkward(value):
        below.insert(0, _number(Fraction(value.denominator)))
    elif value != 1 or not parts:
        parts.insert(0, _number(value))
    result = _divided(parts, below)
    return ir.Unary("-", result, result.type) if is_negative else result


def _divided(above: list[ir.Expr], below: list[ir.Expr]) -> ir.Expr:
    """Return a fraction times the factors that have other indices than the divisor.

    `dy[i, j] / t[i, j] * x[i, p]` is a product of two factors for `gemm`; in
    `dy[i, j] * x[i, p] / t[i, j]` it would not find them.
    """
    if not below:
        return _multiplied(above)
    needed = frozenset[ir.Index]().union(*map(free_indices, below))
    homes = (free_indices(a) for a in above if needed and needed <= free_indices(a))
    home = next(homes, None)
    own = above if home is None else [a for a in above if free_indices(a) <= home]
    others = [a for a in above if a not in own]
    divided = _multiplied(own)
    if isinstance(divided.type, Matrix):  # which WGSL does not divide
        one = binary("/", _number(ONE), _multiplied(below))
        return _multiplied([*above, one])
    fraction = binary("/", divided, _multiplied(below))
    return _multiplied([fraction, *others])


def _is_awkward(value: Fraction) -> bool:
    """Whether a fraction has more than 7 significant decimal digits: 1/3 is written as / 3."""
    return float(value) != float(f"{float(value):.7g}")


def _distributed(choice: ir.Expr, rest: Term, also: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return a product with a choice of numbers: `if x > 0.0 { dy } else { 0.0 }`."""
    if isinstance(choice, ir.Select):
        then = _distributed(choice.then, rest, also)
        otherwise = _distributed(choice.otherwise, rest, also)
        return ir.Select(choice.condition, then, otherwise, then.type)
    assert isinstance(choice, ir.Constant)
    if not choice.value:
        types = {e.type for e in (*rest.factors, *also)} - {_F32}
        return zero_of(types.pop() if types else _F32)
    scaled = rest.coefficient * Fraction(repr(float(choice.value)))
    return _product(replace(rest, coefficient=scaled), also)


def _power(atom: ir.Expr, exponent: Fraction) -> list[ir.Expr]:
    """Return a positive power as factors: x^(5/2) is x, x and sqrt(x)."""
    whole, part = divmod(exponent, 1)
    if part not in {Fraction(0), HALF} or whole > _MOST_REPEATED:
        power = ir.Constant(float(exponent), _F32)
        return [ir.BuiltinCall("pow", (atom, power), _F32)]
    root = [ir.BuiltinCall("sqrt", (atom,), _F32)] if part else []
    return [*[atom] * int(whole), *root]


def _number(value: Fraction) -> ir.Constant:
    return ir.Constant(float(value), _F32)


def _multiplied(parts: list[ir.Expr]) -> ir.Expr:
    first, *rest = parts or [ir.Constant(1.0, _F32)]
    for part in rest:
        first = binary("*", first, part)
    return first
