"""Merge terms of single components into terms of whole vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from kerngen.gradient.composites import (
    direction_of,
    is_sparse,
    is_zero,
    packed,
    part_of,
    part_types,
    zero_of,
)
from kerngen.gradient.render import rendered
from kerngen.gradient.simplify import common
from kerngen.gradient.terms import ONE, Term, product_of
from kerngen.ir.nodes import Construct, Expr, Index
from kerngen.ir.types import Matrix, Scalar, Vector

_Where: TypeAlias = tuple[tuple[Expr, ...], tuple[Index, ...], frozenset[Expr]]


def merged(terms: list[Term]) -> list[Term]:
    """Return a sum with terms of single components merged under equal conditions.

    Before:  dy[i] z[i] vec2f(1.0, 0.0) + dy[i] w[i] vec2f(0.0, 1.0)
    After:   dy[i] vec2f(z[i], w[i])
    """
    groups: dict[_Where, list[Term]] = {}
    whole: list[Term] = []
    for term in terms:
        if is_sparse(direction_of(term)[1]):
            where: _Where = ((), (), frozenset())
            if term.bound:
                where = term.conditions, term.bound, term.solved
            groups.setdefault(where, []).append(term)
        else:
            whole.append(term)
    return [*whole, *(_joined(where, group) for where, group in groups.items())]


def _joined(where: _Where, terms: list[Term]) -> Term:
    """Return one term for several with sparse directions: its direction has their sums.

    Terms with a sum have the same conditions and indices, `where`.  Of the others, shared
    conditions stay around the vector, the rest is at the single component.
    """
    conditions, bound, solved = where
    parts = [direction_of(term) for term in terms]
    numbers = [replace(rest, conditions=(), bound=()) for rest, _ in parts]
    if not bound:
        each = [frozenset(term.conditions) for term in terms]
        conditions = tuple(c for c in terms[0].conditions if all(c in x for x in each))
        numbers = [
            number.under(*(c for c in term.conditions if c not in conditions))
            for number, term in zip(numbers, terms, strict=True)
        ]
    # Chosen, never multiplied by 0: NaN times 0 is NaN.
    is_chosen = any(number.conditions for number in numbers)
    shared = Term(factors={} if is_chosen else common(numbers))
    left = [number.times(shared.to(-ONE)) for number in numbers]
    value = _sum([(n, own) for n, (_, own) in zip(left, parts, strict=True)])
    whole = shared.times(product_of(value))
    return replace(whole, conditions=conditions, bound=bound, solved=solved)


def _sum(parts: list[tuple[Term, Expr]]) -> Expr:
    """Return a sum of vectors or matrices, each times a term, part by part."""
    type_ = parts[0][1].type
    match type_:
        case Scalar():
            return rendered([n.times(product_of(value)) for n, value in parts])
        case Vector() | Matrix():
            pass
    own: list[Expr] = []
    for place, part_type in enumerate(part_types(type_)):
        each = [(number, part_of(value, place)) for number, value in parts]
        kept = [(number, value) for number, value in each if not is_zero(value)]
        own.append(_part(kept) if kept else zero_of(part_type))
    return packed(type_, tuple(own))


def _part(parts: list[tuple[Term, Expr]]) -> Expr:
    """Return a component or column: whole columns are added as they are."""
    if all(
        isinstance(value.type, Scalar) or isinstance(value, Construct)
        for _, value in parts
    ):
        return _sum(parts)
    return rendered([number.times(product_of(value)) for number, value in parts])
