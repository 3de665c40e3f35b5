"""Rewriting expressions for tiles: other indices, and conditions in a normal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kerngen.gradient.integers.forms import form_of, value_of
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.linear import length_of
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value

_COMPARISONS: Final[Mapping[ir.BinaryOp, ir.BinaryOp]] = {
    "<": "<",
    "<=": "<=",
    ">": "<",
    ">=": "<=",
}
"""The normal form of each comparison: `<` or `<=`, with its sides exchanged if it differs."""


class NoSumsError(Exception):
    """Raised while stages are recognised: the reason why they are no gradient of attention."""


def moved(expr: ir.Expr, places: Mapping[ir.Index, ir.Subscript]) -> ir.Expr:
    """Return `expr` with each index in `places` replaced by the subscript there."""
    match expr:
        case ir.IndexValue(index):
            return _value_at(places[index], index) if index in places else expr
        case ir.Load(subscripts=subscripts, path=()):
            there = tuple(_moved_subscript(each, places) for each in subscripts)
            return replace(expr, subscripts=there)
        case ir.Load():
            message = "it reads parts of elements"
            raise NoSumsError(message)
        case _:
            return map_children(expr, lambda part: moved(part, places))


def _value_at(place: ir.Subscript, index: ir.Index) -> ir.Expr:
    """Return the value of an index at a place, which may be clamped to its range."""
    value = subscript_value(place)
    if not isinstance(place, ir.Clamped):
        return value
    last = ir.Binary(
        "-", length_of(index.extent), ir.Constant(1, Scalar.I32), Scalar.I32
    )
    limits = (ir.Cast(value, Scalar.I32), ir.Constant(0, Scalar.I32), last)
    return ir.BuiltinCall("clamp", limits, Scalar.I32)


def _moved_subscript(
    subscript: ir.Subscript, places: Mapping[ir.Index, ir.Subscript]
) -> ir.Subscript:
    match subscript:
        case ir.IndexValue(index):
            return places.get(index, subscript)
        case ir.Affine(value):
            return replace(subscript, value=moved(value, places))
        case ir.Clamped(value):
            return ir.Clamped(moved(value, places))


def ordered(score: ir.Expr | None) -> ir.Expr | None:
    """Return a score with its conditions in normal form, so that equal scores compare equal.

    Gradients write conditions differently: `s + j <= t + i` and `j <= i + (t - s)` are both
    `j - i + s - t <= 0`.
    """
    match score:
        case ir.Select(condition, then, otherwise):
            sides = ordered(then) or then, ordered(otherwise) or otherwise
            return ir.Select(ordered_condition(condition), *sides, score.type)
        case _:
            return score


def ordered_condition(condition: ir.Expr) -> ir.Expr:
    """Return a condition with each `<`, `<=`, `>`, `>=` of i32 as `... < 0` or `... <= 0`."""
    match condition:
        case ir.Binary(op, left, right) if (
            op in _COMPARISONS and left.type is Scalar.I32 and right.type is Scalar.I32
        ):
            if _COMPARISONS[op] != op:
                left, right, op = right, left, _COMPARISONS[op]
            form = form_of(ir.Binary("-", left, right, Scalar.I32))
            items = sorted(form.items(), key=lambda item: [v.order for v in item[0]])
            less = value_of(dict(items))
            return ir.Binary(op, less, ir.Constant(0, Scalar.I32), Scalar.BOOL)
        case _:
            return map_children(condition, ordered_condition)
