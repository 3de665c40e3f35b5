"""Conditions of terms: negated, simplified, and used as facts.

The condition `j < n` gives the fact that the polynomial `n - j - 1` is never negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kerngen.gradient.integers.facts import IntegerFacts
from kerngen.gradient.integers.forms import (
    Form,
    combined,
    form_of,
    plus,
    variables,
)
from kerngen.ir import nodes as ir
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk

BOOL: Final = Scalar.BOOL

_OPPOSITES: Final[dict[ir.BinaryOp, ir.BinaryOp]] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==",
}  # fmt: skip


def conjuncts(condition: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the conditions that `and` joins."""
    if isinstance(condition, ir.Binary) and condition.op == "and":
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    elif isinstance(condition, ir.Unary) and not isinstance(
        opposite := negated(condition.operand), ir.Unary
    ):
        # 'not (i == 0)' is known as 'i != 0' is.
        yield from conjuncts(opposite)
    elif condition != ir.Constant(value=True, type=BOOL):
        yield condition


def negated(condition: ir.Expr) -> ir.Expr:
    """Return the negation of a condition.

    For floats, `not x > 0.0` does not become `x <= 0.0`, as both are false for NaN.
    """
    match condition:
        case ir.Unary(op="not", operand=operand):
            return operand
        case ir.Binary(op=op, left=left) if op in _OPPOSITES and left.type.is_integer:
            return replace(condition, op=_OPPOSITES[op])
        case ir.Binary(op="or", left=left, right=right):
            return ir.Binary("and", negated(left), negated(right), BOOL)
        case _:
            return ir.Unary("not", condition, BOOL)


def all_hold(conditions: Iterable[ir.Expr]) -> ir.Expr:
    """Return the conjunction of conditions, those on indices alone first.

    They shield the reads of the others: of `i - u >= 0 and x[i] == top[i - u]` the read
    is not evaluated where i - u is no place of `top`.
    """
    first, *rest = sorted(conditions, key=_reads)
    for condition in rest:
        first = ir.Binary("and", first, condition, BOOL)
    return first


def _reads(condition: ir.Expr) -> bool:
    """Whether a condition reads an element: of a tensor, a vector or a member's array."""
    return any(
        isinstance(node, ir.Load | ir.Part)
        or (
            isinstance(node, ir.UniformValue)
            and any(isinstance(step, ir.At) for step in node.path)
        )
        for node in walk(condition)
    )


def _is_false(form: Form, facts: IntegerFacts) -> bool:
    """Whether a form without indices is surely negative."""
    if any(isinstance(value, ir.IndexValue) for value in variables(form)):
        return False
    opposite = plus({monomial: -factor for monomial, factor in form.items()}, -1)
    return set(form) <= {()} or facts.is_never_negative(opposite)


def facts_of(condition: ir.Expr) -> tuple[Form, ...]:
    """Return forms that are never negative where a condition is true; () if it gives none."""
    if not isinstance(condition, ir.Binary) or not condition.left.type.is_integer:
        return ()
    difference = combined("-", form_of(condition.left), form_of(condition.right))
    opposite = {monomial: -factor for monomial, factor in difference.items()}
    match condition.op:
        case "<":
            return (plus(opposite, -1),)
        case "<=":
            return (opposite,)
        case ">":
            return (plus(difference, -1),)
        case ">=":
            return (difference,)
        case "==":
            return (difference, opposite)
        case _:
            return ()


def unequal_to_zero(condition: ir.Expr) -> tuple[Form, ...]:
    """Return a form and its negation, if a condition means that they are not 0.

    If one of the two is never negative, it is at least 1.
    """
    match condition:
        case ir.Binary(op="!=", left=left, right=right) if left.type is Scalar.I32:
            difference = combined("-", form_of(left), form_of(right))
            return difference, {m: -factor for m, factor in difference.items()}
        case _:
            return ()


def without_known(
    conditions: Iterable[ir.Expr], facts: IntegerFacts
) -> tuple[ir.Expr, ...]:
    """Return conditions without those that are always true, or follow from others.

    A condition on elements is no proof of one on indices: `x[i - 1] > 0` is only read inside
    of its axis because `i > 0` comes before it, so `i > 0` must stay.
    """
    kept = dict.fromkeys(conditions)
    forms = {c: facts_of(c) for c in kept}
    reads = {c for c in kept if _reads(c)}
    # From `n == -2`, or `s[i] > s[i]`, which is -1 >= 0, all would follow.
    usable = {
        c: tuple(form for form in own if not _is_false(form, facts))
        for c, own in forms.items()
    }
    for condition, wanted in forms.items():
        if not wanted:
            continue
        if condition in reads and not any(wanted):
            # Of `y[i] == y[i] and x[2 * i] > 0.0`: behind it, x is clamped.
            continue
        known = tuple(
            form
            for other in kept
            if other is not condition
            if condition in reads or other not in reads
            for form in usable[other]
        )
        if all(facts.is_never_negative(form, known) for form in wanted):
            del kept[condition]
    return tuple(kept)


def chosen(expr: ir.Expr, known: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return an expression with the branches taken that known conditions decide."""
    if isinstance(expr, ir.Select):
        if all(c in known for c in conjuncts(expr.condition)):
            return chosen(expr.then, known)
        if negated(expr.condition) in known:
            return chosen(expr.otherwise, known)
    return map_children(expr, lambda child: chosen(child, known))
