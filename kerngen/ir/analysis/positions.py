"""Positions of stores, as `cache[at + i, g]`: no two elements have the same one.

So each index of the statement must be in one subscript, alone or with a factor.  Everything
else in the subscripts, as `at`, must be the same for all elements.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.analysis.affine import affine_form, is_fixed
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import (
    Clamped,
    Expr,
    Index,
    IndexValue,
    Subscript,
    UniformValue,
)
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value

_UNKNOWN: Final = UniformValue("", Scalar.I32)
"""Represents any number that is the same for all elements."""


def moving_index(place: Subscript) -> Index | None:
    """Return the index that a subscript of a position depends on; None if it depends on none.

    Raises `ValueError` where two elements may have the same position: with several indices,
    with `i / 2`, and with a multiple of an index plus a value that only the device knows,
    `2 * i + at[0]`, as the host can't check that such a sum stays inside of the axis.
    """
    if isinstance(place, IndexValue):
        return place.index
    if not free_indices(subscript_value(place)):
        return None
    # Affine in one index, whatever the numbers are that only the device knows.
    form = affine_form(_without_unknowns(subscript_value(place)))
    if form is None or len(form.terms) != 1:
        raise ValueError(place)
    (index,) = form.terms
    factor = form.coefficient(index)
    if factor is None or (isinstance(place, Clamped) and abs(factor) != 1):
        raise ValueError(place)
    return index


def _without_unknowns(expr: Expr) -> Expr:
    """Return an expression in which `_UNKNOWN` replaces parts that only the device knows."""
    if is_fixed(expr):
        return expr
    if expr.type.is_integer and not free_indices(expr):
        return _UNKNOWN
    return map_children(expr, _without_unknowns)


def at_places(value: Expr, places: tuple[Subscript, ...]) -> Expr:
    """Return `StoreAt(value, places)`, or just `value` if all places are bare indices."""
    if all(isinstance(place, IndexValue) for place in places):
        return value
    return StoreAt(value, places)
