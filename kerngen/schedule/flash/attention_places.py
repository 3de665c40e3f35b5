"""Rewriting expressions for tiles: other indices, and conditions in a normal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kerngen.gradient.integers.forms import form_of, value_of
from kerngen.ir.analysis.linear import length_of
from kerngen.ir.nodes import (
    Affine,
    Binary,
    BinaryOp,
    BuiltinCall,
    Cast,
    Clamped,
    Constant,
    Expr,
    Index,
    IndexValue,
    Load,
    Select,
    Subscript,
)
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value

_COMPARISONS: Final[Mapping[BinaryOp, BinaryOp]] = {
    "<": "<",
    "<=": "<=",
    ">": "<",
    ">=": "<=",
}
"""Which of two comparisons each is, with its sides exchanged where it is the other."""


class NoSumsError(Exception):
    """Raised inside recognition: why stages are no gradient of attention."""


def moved(expr: Expr, places: Mapping[Index, Subscript]) -> Expr:
    """Return an expression with indices replaced by other subscripts."""
    match expr:
        case IndexValue(index):
            return _value_at(places[index], index) if index in places else expr
        case Load(subscripts=subscripts, path=()):
            there = tuple(_moved_subscript(each, places) for each in subscripts)
            return replace(expr, subscripts=there)
        case Load():
            message = "it reads parts of elements"
            raise NoSumsError(message)
        case _:
            return map_children(expr, lambda part: moved(part, places))


def _value_at(place: Subscript, index: Index) -> Expr:
    """Return the value of an index at a place, which may be clamped to its range."""
    value = subscript_value(place)
    if not isinstance(place, Clamped):
        return value
    last = Binary("-", length_of(index.extent), Constant(1, Scalar.I32), Scalar.I32)
    limits = (Cast(value, Scalar.I32), Constant(0, Scalar.I32), last)
    return BuiltinCall("clamp", limits, Scalar.I32)


def _moved_subscript(
    subscript: Subscript, places: Mapping[Index, Subscript]
) -> Subscript:
    match subscript:
        case IndexValue(index):
            return places.get(index, subscript)
        case Affine(value):
            return replace(subscript, value=moved(value, places))
        case Clamped(value):
            return Clamped(moved(value, places))


def replaced(expr: Expr, old: Expr | None, new: Expr) -> Expr:
    """Return a value with a part of it replaced."""
    if expr == old:
        return new
    return map_children(expr, lambda part: replaced(part, old, new))


def ordered(score: Expr | None) -> Expr | None:
    """Return a score with its conditions in normal form, as gradients write them anew.

    `s + j <= t + i` and `j <= i + (t - s)` are both `j - i + s - t <= 0`.
    """
    match score:
        case Select(condition, then, otherwise):
            sides = ordered(then) or then, ordered(otherwise) or otherwise
            return Select(ordered_condition(condition), *sides, score.type)
        case _:
            return score


def ordered_condition(condition: Expr) -> Expr:
    """Return a condition with its comparisons in one form."""
    match condition:
        case Binary(op, left, right) if (
            op in _COMPARISONS and left.type is Scalar.I32 and right.type is Scalar.I32
        ):
            if _COMPARISONS[op] != op:
                left, right, op = right, left, _COMPARISONS[op]
            form = form_of(Binary("-", left, right, Scalar.I32))
            items = sorted(form.items(), key=lambda item: [v.order for v in item[0]])
            less = value_of(dict(items))
            return Binary(op, less, Constant(0, Scalar.I32), Scalar.BOOL)
        case _:
            return map_children(condition, ordered_condition)
