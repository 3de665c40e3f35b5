"""Sums by keys in adjoints: the terms that a key sums are a let before it.

    Before:  dt[i, p] = sum[j, l when ids[j] == u32(i)] dy[j, l] * w[p, l];
    After:   let terms[j, p] = sum[l] dy[j, l] * w[p, l];
             dt[i, p] = sum[j when ids[j] == u32(i)] terms[j, p];

So a product of matrices stays one.  A window that is clamped, `x[clamp(i + u - 1, 0, n - 1)]`,
is first read from a longer axis, as a padded image is: the let is over that, and the key is
`clamp(s - 1, 0, n - 1)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from typing import final

from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.facts import IntegerFacts
from kerngen.gradient.integers.forms import (
    Form,
    coefficient,
    combined,
    form_of,
    length,
    plus,
    scaled,
    value_of,
    variables,
)
from kerngen.gradient.integers.solve import solved
from kerngen.gradient.render import is_bare, rendered
from kerngen.gradient.sums.borders import ClampedSums, Let, border_of
from kerngen.gradient.sums.quotients import with_quotients
from kerngen.gradient.terms import ONE, Term, indices_of
from kerngen.ir.nodes import (
    Affine,
    Binary,
    Cast,
    Expr,
    Index,
    IndexValue,
)
from kerngen.ir.walk import children


@final
@dataclass(frozen=True)
class Keys:
    """Makes lets of the terms that sums by key add up.

    `fresh` makes an index with a computed range.  `several`: the program has several outputs,
    so some may be empty where others are not.
    """

    facts: IntegerFacts
    fresh: Callable[[str, Expr], Index]
    several: bool

    def parts(self, term: Term, indices: tuple[Index, ...], let: Let) -> list[Term]:
        """Return a term, over the `indices` of the result, as terms of lets."""
        # A gather from an empty axis is refused at the call, unless all axes are empty: of
        # several outputs, some may be empty and others not.
        doubtful = frozenset(term.bound if self.several else ())
        term = self._with_let(with_quotients(term, indices, let), indices, let)
        borders = [border_of(key, term, self.facts) for key in _keys(term)]
        known = [
            border
            for border in borders
            if border is not None
            if border.index not in doubtful
            or self.facts.has_elements(border.index.extent, border.place.extent)
        ]
        if not known or len(known) < len(borders) or len(known) < len(term.bound):
            return [term]
        return ClampedSums(self.facts, self.fresh).parts(term, indices, known, let)

    def _with_let(self, term: Term, indices: tuple[Index, ...], let: Let) -> Term:
        """Return a term with a let for the inner sum that its keys add up."""
        padded = self._padded(term)
        keys = _keys(padded)
        outer = frozenset[Index]().union(*map(free_indices, keys))
        if not keys or outer.issuperset(padded.bound):
            return term
        split = _Split(padded, indices, keys)
        if padded is term and not split.is_product:
            return term
        return split.joined(let)

    def _padded(self, term: Term) -> Term:
        """Return a term with clamped windows as single indices of longer axes."""
        for key in _keys(term):
            window = self._window(key, term.bound)
            if window is not None:
                first, value, low, count = window
                # A new index s counts the places of the window from its least one on; the
                # equation `value - low == s` is solved for the window's first index.
                index = self.fresh("s", value_of(count))
                place = value_of(combined("-", value, low))
                axis = (Affine(place, ""), index, index.extent)
                rest = replace(term, bound=tuple(i for i in term.bound if i != first))
                found = solved(rest, (first,), [axis], self.facts, self.fresh)
                return self._padded(replace(found, bound=(*found.bound, index)))
        return term

    def _window(
        self, key: Binary, bound: tuple[Index, ...]
    ) -> tuple[Index, Form, Form, Form] | None:
        """Return the window that a key is of, a sum of indices such as `i + u - 1`, or None.

        The window is the index to solve for, the form of the sum, its least value, and the
        number of its values.
        """
        used = [index for index in bound if index in free_indices(key)]
        form = _common(key, frozenset(used)) if len(used) > 1 else None
        if form is None:
            return None
        low = high = form
        for index in used:
            ends = self._ends(low, high, index)
            if ends is None:
                return None
            low, high = ends
        return used[0], form, low, plus(combined("-", high, low), 1)

    def _ends(self, low: Form, high: Form, index: Index) -> tuple[Form, Form] | None:
        """Return the least value of `low` and the greatest of `high` over an index's range."""
        least, most = (coefficient(form, IndexValue(index)) for form in (low, high))
        if least is None or most is None:
            return None
        factor, last = least[0], plus(form_of(length(index.extent)), -1)
        far = combined("*", factor, last)
        if self.facts.is_never_negative(factor):
            return least[1], combined("+", most[1], far)
        if self.facts.is_never_negative(scaled(factor, -1)):
            return combined("+", least[1], far), most[1]
        return None


def _common(expr: Expr, indices: frozenset[Index]) -> Form | None:
    """Return the one sum through which an integer depends on indices, or None.

    Of `clamp(i + u, 0, n)` that is `i + u`.
    """
    used = [part for part in children(expr) if free_indices(part) & indices]
    if len(used) != 1 or not free_indices(used[0]) >= indices:
        return None
    form = form_of(used[0])
    inner = [v for v in variables(form) if free_indices(v) & indices]
    if all(isinstance(v, IndexValue) for v in inner):
        return form
    return _common(inner[0], indices) if len(inner) == 1 else None


def _keys(term: Term) -> tuple[Binary, ...]:
    """Return the conditions that compare a value of each term with an index of the result.

    `ids[j] == u32(i)` is one, if the sum is over j and the result over i.
    """
    return tuple(
        condition
        for condition in term.conditions
        if isinstance(condition, Binary) and condition.op == "=="
        for one, other in permutations((condition.left, condition.right))
        if _is_place(one, term) and free_indices(other).intersection(term.bound)
    )


def _is_place(expr: Expr, term: Term) -> bool:
    """Whether a side of a condition is an index of the result that no factor reads."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return (
        isinstance(expr, IndexValue)
        and expr.index not in term.bound
        and expr.index not in indices_of(term.factors)
    )


@final
@dataclass(frozen=True)
class _Split:
    """A sum by keys in two steps: first over the `rest` of its indices, then by key."""

    term: Term
    indices: tuple[Index, ...]
    keys: tuple[Binary, ...]

    @cached_property
    def rest(self) -> frozenset[Index]:
        """The indices that the inner sum is over."""
        by_keys = frozenset[Index]().union(*map(free_indices, self.keys))
        return frozenset(self.term.bound) - by_keys

    @cached_property
    def inner(self) -> dict[Expr, Fraction]:
        """The factors of the inner sum."""
        factors = self.term.factors.items()
        return {a: e for a, e in factors if free_indices(a) & self.rest}

    @property
    def is_product(self) -> bool:
        """Whether the inner sum is a matrix product: two factors each have an own index."""
        return any(
            free_indices(one) - free_indices(other)
            and free_indices(other) - free_indices(one)
            for one, other in combinations(self.inner, 2)
        )

    def joined(self, let: Let) -> Term:
        """Return the sum by keys of the inner sum, which becomes a let."""
        term = self.term
        # Conditions on the rest of the indices belong to the let.  So do those that may keep
        # its reads inside of their axes, unless it reads at bare indices.
        own = [c for c in term.conditions if free_indices(c) & self.rest]
        others = [c for c in term.conditions if c not in own]
        if not all(map(is_bare, self.inner)):
            own += (c for c in others if c not in self.keys)
        bound = tuple(index for index in term.bound if index in self.rest)
        inside = Term(ONE, self.inner, tuple(own), bound, term.solved)
        found = let(self._places(inside), rendered([inside]))
        outer = {a: e for a, e in term.factors.items() if a not in self.inner}
        return replace(
            term,
            factors={**outer, found: ONE},
            conditions=tuple(others),
            bound=tuple(index for index in term.bound if index not in self.rest),
        )

    def _places(self, inside: Term) -> tuple[Index, ...]:
        """Return the let's indices: the result's, each followed by the indices of its key."""
        used = indices_of((*inside.factors, *inside.conditions)) - self.rest
        by_key = (
            [i for k in self.keys if index in free_indices(k) for i in self.term.bound]
            for index in self.indices
        )
        pairs = zip(self.indices, by_key, strict=True)
        in_order = (index for place, set_by in pairs for index in (place, *set_by))
        return tuple(index for index in dict.fromkeys(in_order) if index in used)
