"""Bounds of affine subscripts that hold for all lengths.

An affine form is greatest and least where each index is at an end of its range: a corner.
There, its value is a sum of dims, whose coefficients prove bounds for all lengths:

    x[n - 1 - i], i over n      corners: n - 1 and 0       inside an axis of length n
    x[i + 1],     i over n      corners: 1 and n           n is past the end
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, as_literal

Linear: TypeAlias = Mapping[str, int]
"""Coefficients by the dim or scalar that they are multiplied with; "" has the constant."""

MOST_INDICES: Final = 6
"""Forms of more indices have no corners, and are not proven: n indices have 2^n."""


@final
@dataclass(frozen=True)
class Corner:
    """The `value` of an affine form where each index is at an end of its range.

    `at` has the end of each index, 0 or its length - 1.
    """

    value: Linear
    at: tuple[tuple[ir.Index, Linear], ...]

    def is_below(self) -> bool:
        """Whether the value is negative for all lengths."""
        return _never_negative(_sum(_scaled(self.value, -1), {"": -1}), self._ranged)

    def is_beyond(self, extent: ir.Extent) -> bool:
        """Whether the value is past the end of an axis for all lengths."""
        return _never_negative(self._room(extent, -1), self._ranged)

    def is_before_end(self, extent: ir.Extent) -> bool:
        """Whether the value is below the end of an axis for all lengths."""
        return _never_negative(_sum(self._room(extent, 1), {"": -1}), self._ranged)

    def is_from_start(self) -> bool:
        """Whether the value is at least 0 for all lengths."""
        return _never_negative(self.value, self._ranged)

    def _room(self, extent: ir.Extent, sign: int) -> Linear:
        return _scaled(_sum(_length(extent), _scaled(self.value, -1)), sign)

    @property
    def _ranged(self) -> frozenset[str]:
        """The dims that are at least 1, for an index ranges over each."""
        return frozenset(i.extent for i, _ in self.at if isinstance(i.extent, str))


def corners(form: AffineForm) -> tuple[Corner, ...]:
    """Return the corners of a form, 2^n for n indices.

    There are none if a coefficient is no literal, if the offset is no sum of dims, if an
    index ranges over nothing, or with more than `MOST_INDICES` indices.
    """
    offset = _linear(form.offset)
    factors = {index: as_literal(c) for index, c in form.terms.items()}
    is_empty = any(index.extent == 0 for index in factors)
    if offset is None or is_empty or len(factors) > MOST_INDICES:
        return ()
    if any(factor is None for factor in factors.values()):
        return ()
    return tuple(_corners(offset, {i: f for i, f in factors.items() if f}))


def _corners(offset: Linear, factors: Mapping[ir.Index, int]) -> Iterator[Corner]:
    # Each index is 0 or its length - 1.
    ends = [({"": 0}, _sum(_length(index.extent), {"": -1})) for index in factors]
    for places in product(*ends):
        at = tuple(zip(factors, places, strict=True))
        terms = (_scaled(place, factors[index]) for index, place in at)
        yield Corner(_sum(offset, *terms), at)


def stays_inside(form: AffineForm, extent: ir.Extent) -> bool | None:
    """Whether a subscript stays inside an axis; None if that is not known here.

    True means that all corners are literals inside an axis of literal length, False that some
    corner is outside of the axis for all lengths.
    """
    found = corners(form)
    if any(corner.is_below() or corner.is_beyond(extent) for corner in found):
        return False
    known = isinstance(extent, int) and all(_is_known(c.value) for c in found)
    return True if found and known else None


def starts_from_zero(form: AffineForm) -> bool:
    """Whether a form is proven to be at least 0 wherever all lengths are at least 1."""
    found = [corner.value for corner in corners(form)]
    return bool(found) and all(
        _never_negative(value, frozenset(filter(None, value))) for value in found
    )


def extremes(form: AffineForm) -> tuple[int, int] | None:
    """Return the least and greatest value of a form, or None if they depend on lengths."""
    found = [corner.value for corner in corners(form)]
    if not found or not all(map(_is_known, found)):
        return None
    values = [value.get("", 0) for value in found]
    return min(values), max(values)


def _is_known(value: Linear) -> bool:
    return not any(factor for name, factor in value.items() if name)


def _never_negative(value: Linear, ranged: frozenset[str]) -> bool:
    """Whether a sum is at least 0 for all lengths, of which those of `ranged` are 1 or more."""
    least = value.get("", 0)
    for name, factor in value.items():
        if name and factor < 0:
            return False
        # The sum is least where each length is: 0, or 1 if an index ranges over it.
        least += factor if name in ranged else 0
    return least >= 0


def _linear(expr: ir.Expr) -> Linear | None:
    """Return an integer expression as a sum of dims, or None if it is none."""
    known = as_literal(expr)
    if known is not None:
        return {"": known}
    match expr:
        case ir.DimValue(name=name):
            return {name: 1}
        case ir.Unary(op="-", operand=operand):
            inner = _linear(operand)
            return None if inner is None else _scaled(inner, -1)
        case ir.Cast(operand=operand):
            return _linear(operand)
        case ir.Binary(op="+" | "-" as op, left=left, right=right):
            first, second = _linear(left), _linear(right)
            if first is None or second is None:
                return None
            return _sum(first, _scaled(second, 1 if op == "+" else -1))
        case ir.Binary(op="*", left=left, right=right):
            for one, other in ((left, right), (right, left)):
                factor, rest = as_literal(one), _linear(other)
                if factor is not None and rest is not None:
                    return _scaled(rest, factor)
            return None
        case _:
            return None


def _length(extent: ir.Extent) -> Linear:
    return {extent: 1} if isinstance(extent, str) else {"": extent}


def _sum(*terms: Linear) -> Linear:
    total: Counter[str] = Counter()
    for term in terms:
        total.update(term)
    return total


def _scaled(value: Linear, factor: int) -> Linear:
    return {name: coefficient * factor for name, coefficient in value.items()}
