"""Positions of stores: `cache[at + i, g]` is one per element of the statement's domain.

A subscript of a position holds one index of the statement, or none.  The others are the
same for all elements, so that two elements never have the same position.
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
"""Any number that is the same for all elements."""


def moving_index(place: Subscript) -> Index | None:
    """Return the index that a subscript of a position depends on, if there is one.

    Raises `ValueError` where two elements may have the same place: of several indices,
    of `i / 2`, and of one that a number from the device is added to a multiple of, as the
    host does not check that it stays inside of the axis.
    """
    if isinstance(place, IndexValue):
        return place.index
    if not free_indices(subscript_value(place)):
        return None
    form = affine_form(_without_unknowns(subscript_value(place)))
    if form is None or len(form.terms) != 1:
        raise ValueError(place)
    (index,) = form.terms
    factor = form.coefficient(index)
    if factor is None or (isinstance(place, Clamped) and abs(factor) != 1):
        raise ValueError(place)
    return index


def _without_unknowns(expr: Expr) -> Expr:
    """Replace what has no index, and is not known to the host."""
    if is_fixed(expr):
        return expr
    if expr.type.is_integer and not free_indices(expr):
        return _UNKNOWN
    return map_children(expr, _without_unknowns)


def at_places(value: Expr, places: tuple[Subscript, ...]) -> Expr:
    """Return a value as a store at `places`, or as it is where they are bare indices."""
    if all(isinstance(place, IndexValue) for place in places):
        return value
    return StoreAt(value, places)
