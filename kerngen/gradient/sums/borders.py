"""Adjoints at clamped places: inside of the axis a gather, at its ends sums.

    Before:  dx[i] = sum[k when clamp(k - 1, 0, n - 1) == i] dy[k];
    After:   dx[i] = (if i + 1 < n { dy[i + 1] } else { 0.0 })
                 + (if i == 0 { dy[0] } else { 0.0 });

So no element is compared with each other one.  Of several axes, all but the last are lets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import BOOL
from kerngen.gradient.integers.facts import IntegerFacts
from kerngen.gradient.integers.forms import (
    Form,
    coefficient,
    combined,
    form_of,
    length,
    number,
    plus,
    scaled,
    value_of,
)
from kerngen.gradient.integers.solve import over_renamed, solved
from kerngen.gradient.render import rendered
from kerngen.gradient.terms import ONE, Term
from kerngen.ir import nodes as ir

Let: TypeAlias = Callable[[tuple[ir.Index, ...], ir.Expr], ir.Load]
"""Names a value over some indices."""


@final
@dataclass(frozen=True)
class Border:
    """A key `clamp(form, 0, last) == place`, where one summed `index` is in the form."""

    key: ir.Binary
    index: ir.Index
    place: ir.Index
    form: Form
    is_low: bool
    is_high: bool


def border_of(key: ir.Binary, term: Term, facts: IntegerFacts) -> Border | None:
    """Return the clamp that a key of a sum is, or None if it is something else."""
    # One side is an index of the result; the other side has one index of the sum.
    sides = (key.left, key.right)
    place = next((side for side in sides if isinstance(side, ir.IndexValue)), None)
    used = [index for index in term.bound if index in free_indices(key)]
    if place is None or len(used) != 1:
        return None
    (index,), (other,) = used, (side for side in sides if side is not place)
    value, lows, highs = _limits(other, index)
    form = form_of(value)
    split = coefficient(form, ir.IndexValue(index))
    if split is None or index in free_indices(value_of(split[1])):
        return None
    # The bounds of the clamp are 0 and the last element of the result's axis.
    last = facts.whole(plus(form_of(length(place.index.extent)), -1))
    if not facts.is_nonzero(split[0]) or any(map(form_of, lows)):
        return None
    if not (lows or highs) or any(facts.whole(form_of(h)) != last for h in highs):
        return None
    # No other condition may read the index.
    others = (c for c in term.conditions if c is not key)
    if any(index in free_indices(c) for c in others):
        return None
    return Border(key, index, place.index, form, bool(lows), bool(highs))


def _limits(
    expr: ir.Expr, index: ir.Index
) -> tuple[ir.Expr, tuple[ir.Expr, ...], tuple[ir.Expr, ...]]:
    """Return the value that a clamp keeps inside, its lower bounds, and its upper bounds."""
    match expr:
        case ir.BuiltinCall(builtin="clamp", arguments=(inner, low, high)):
            value, lows, highs = _limits(inner, index)
            return value, (*lows, low), (*highs, high)
        case ir.BuiltinCall(builtin="min" | "max" as name, arguments=(one, other)):
            inner, bound = (one, other) if index in free_indices(one) else (other, one)
            value, lows, highs = _limits(inner, index)
            if name == "max":
                return value, (*lows, bound), highs
            return value, lows, (*highs, bound)
        case _:
            return expr, (), ()


@final
@dataclass(frozen=True)
class ClampedSums:
    """Takes sums at clamped places apart; `fresh` makes an index with a new range."""

    facts: IntegerFacts
    fresh: Callable[[str, ir.Expr], ir.Index]

    def parts(
        self, term: Term, indices: tuple[ir.Index, ...], borders: list[Border], let: Let
    ) -> list[Term]:
        """Return the terms of a sum over the `indices` of the result whose keys are clamps."""
        first, *others = borders
        if not others:
            return self._of_axis(term, first)
        bound = frozenset(term.bound)
        inner = {a: e for a, e in term.factors.items() if free_indices(a) & bound}
        keys = tuple(border.key for border in others)
        axis = Term(
            factors=inner,
            conditions=tuple(c for c in term.conditions if c not in keys),
            bound=(first.index,),
            solved=term.solved,
        )
        # A let of the first axis, folded, is summed over the axes that are left.
        folded = rendered(self._of_axis(axis, first))
        own = {border.place: border.index for border in others}
        in_order = (own.get(index, index) for index in indices)
        places = tuple(index for index in in_order if index in free_indices(folded))
        outer = {a: e for a, e in term.factors.items() if a not in inner}
        rest = replace(
            term,
            factors={**outer, let(places, folded): ONE},
            conditions=keys,
            bound=tuple(own.values()),
        )
        return self.parts(rest, indices, others, let)

    def _of_axis(self, term: Term, border: Border) -> list[Term]:
        """Return the gather inside of an axis, and the sum of what lies beyond each end."""
        kept = tuple(c for c in term.conditions if c is not border.key)
        bound = tuple(index for index in term.bound if index != border.index)
        rest = replace(term, conditions=kept, bound=bound)
        axis = (ir.Affine(value_of(border.form), ""), border.place, border.place.extent)
        inside = solved(rest, (border.index,), [axis], self.facts, self.fresh)
        last = self._last(border.place)
        ends: list[tuple[ir.Expr, Form]] = []
        if border.is_low:
            ends.append((number(0), scaled(border.form, -1)))
        if border.is_high:
            beyond = combined("-", border.form, last)
            ends.append((value_of(last), beyond))
        return [
            inside,
            *(
                self._beyond(rest, border, *end)
                for end in ends
                if not self.facts.is_never_negative(scaled(end[1], -1))
            ),
        ]

    def _last(self, index: ir.Index) -> Form:
        return self.facts.whole(plus(form_of(length(index.extent)), -1))

    def _beyond(self, rest: Term, border: Border, end: ir.Expr, beyond: Form) -> Term:
        """Return the term of an end of the axis, a sum over the places beyond it.

        `beyond` is how far a place lies beyond the end: positive, or the place is not summed.
        """
        is_end = ir.Binary("==", ir.IndexValue(border.place), end, BOOL)
        # A padding of one element is no sum, but a read: `if i == 0 { dy[0] }`.
        only = self._only(border.index, beyond)
        if only is not None:
            found = over_renamed(rest, {border.index: only}).under(is_end)
            return replace(found, solved=found.solved | {is_end})
        index = form_of(ir.IndexValue(border.index))
        factor, shift = self._split(border.index, beyond)
        own, least = combined("*", factor, index), scaled(shift, -1)
        is_rising = all(each > 0 for each in factor.values())
        if not is_rising:
            own, least = scaled(own, -1), scaled(least, -1)
        op: ir.BinaryOp = ">" if is_rising else "<"
        is_beyond = ir.Binary(op, value_of(own), value_of(least), BOOL)
        found = replace(rest, bound=(*rest.bound, border.index))
        both = (is_end, is_beyond)
        return replace(found.under(*both), solved=found.solved | {*both})

    def _only(self, index: ir.Index, beyond: Form) -> ir.Expr | None:
        """Return the one value of an index beyond an end, None if there may be several."""
        factor, shift = self._split(index, beyond)
        last = self._last(index)
        if factor not in ({(): 1}, {(): -1}) or not self.facts.is_never_negative(last):
            return None
        place = last if factor == {(): 1} else form_of(number(0))
        most = self.facts.whole(combined("+", shift, place))
        return value_of(place) if most == {(): 1} else None

    def _split(self, index: ir.Index, form: Form) -> tuple[Form, Form]:
        """Return (g, r) of a form `g * index + r`."""
        found = coefficient(form, ir.IndexValue(index))
        assert found is not None
        return found
