"""Expand reads of sums, for proofs that terms cancel.

Attention that divides after its sum has as the adjoint of its scores' maximum a difference:

    sum[j] e[i, j] * u[i, j] - sum[p] dy[i, p] * y[i, p]
        where u[i, j] = sum[p] dy[i, p] * v[j, p]      y[i, p] = sum[j] e[i, j] * v[j, p]

With the definitions of u and y put in, both are the same sum over j and p, so it is 0:

    sum[j, p] e[i, j] * dy[i, p] * v[j, p]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, final

from kerngen.gradient.match import ProductPattern, renamings
from kerngen.gradient.terms import Term, indices_of, substituted
from kerngen.ir.nodes import Expr, Index, IndexValue, Load, Tensor
from kerngen.ir.walk import subscript_value

_MOST_OPENED: Final = 16
"""A proof that opens more sums is not tried: derivation is to take milliseconds."""


@final
@dataclass
class Openings:
    """Remembers for each tensor the sum that its elements are."""

    _sums: dict[Tensor, tuple[tuple[Index, ...], Term]] = field(
        default_factory=dict[Tensor, tuple[tuple[Index, ...], Term]]
    )
    _opened: int = 0

    def record(self, result: Term, indices: tuple[Index, ...], whole: Term) -> None:
        """Record that a tensor's element, at some indices, is a sum."""
        atom, *more = result.factors
        if isinstance(atom, Load) and not more and result.coefficient == 1:
            self._sums[atom.tensor] = indices, whole

    def all_opened(
        self, terms: Iterable[Term], multiplied_out: Callable[[Term], list[Term]]
    ) -> list[Term] | None:
        """Return terms with each read of a sum replaced by that sum's terms, or None."""
        waiting, done, count = [*terms], list[Term](), 0
        while waiting:
            term = waiting.pop()
            inner = self._with_one_opened(term)
            if inner is None:
                done.append(term)
                continue
            count += 1
            if count > _MOST_OPENED:
                return None
            waiting += multiplied_out(inner)
        return done if count else None

    def _with_one_opened(self, term: Term) -> Term | None:
        for atom, exponent in term.factors.items():
            if exponent == 1 and isinstance(atom, Load) and atom.tensor in self._sums:
                own = {a: e for a, e in term.factors.items() if a != atom}
                inner = self._sum_at(atom)
                whole = replace(term, factors=own).times(inner).over(inner.bound)
                return whole.under(*inner.conditions)
        return None

    def _sum_at(self, load: Load) -> Term:
        """Return the sum that a read is equal to, over new indices, so that none is taken."""
        indices, whole = self._sums[load.tensor]
        self._opened += 1
        fresh = tuple(
            replace(index, name=f"{index.name}#open{self._opened}")
            for index in whole.bound
        )
        places = map(subscript_value, load.subscripts)
        by: dict[Index, Expr] = dict(zip(indices, places, strict=True))
        by |= zip(whole.bound, map(IndexValue, fresh), strict=True)
        factors = {substituted(a, by): e for a, e in whole.factors.items()}
        conditions = tuple(substituted(c, by) for c in whole.conditions)
        return replace(whole, factors=factors, conditions=conditions, bound=fresh)


def cancel(terms: Iterable[Term]) -> bool:
    """Whether some terms add up to 0, if indices may be renamed."""
    left = [*terms]
    while left:
        first = left.pop()
        total = first.coefficient
        for other in [*left]:
            if _is_same_sum(first, other):
                total += other.coefficient
                left.remove(other)
        if total:
            return False
    return True


def _is_same_sum(one: Term, other: Term) -> bool:
    if len(one.bound) != len(other.bound):
        return False
    used = indices_of((*one.factors, *one.conditions))
    pattern = ProductPattern(tuple(one.factors.items()), used.intersection(one.bound))
    return any(
        _fits(one, other, renaming)
        for renaming, _ in renamings(pattern, other.factors, whole=True)
    )


def _fits(one: Term, other: Term, renaming: dict[Index, Index]) -> bool:
    if {renaming.get(index) for index in one.bound} != {*other.bound}:
        return False
    by: dict[Index, Expr] = {old: IndexValue(new) for old, new in renaming.items()}
    factors = {substituted(a, by): e for a, e in one.factors.items()}
    conditions = {substituted(c, by) for c in one.conditions}
    return factors == dict(other.factors) and conditions == {*other.conditions}
