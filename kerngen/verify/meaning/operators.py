"""Operators on the oracle's numbers: arithmetic, comparisons and logic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from kerngen.ir.types import Scalar
from kerngen.verify.meaning import number
from kerngen.verify.meaning.functions import INTEGER_OPERATORS, wrap
from kerngen.verify.meaning.number import BoundedArray

_RELATIONS: Final[Mapping[str, np.ufunc]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def operation(
    op: str, left: BoundedArray, right: BoundedArray, scalar: Scalar
) -> BoundedArray:
    """Apply an operator to numbers, component by component."""
    if op in {"and", "or"}:
        return _logic(op, left, right)
    if op in _RELATIONS:
        if scalar is Scalar.F32:
            return number.compare(left, right, _RELATIONS[op])
        answer = _RELATIONS[op](left.value, right.value)
        return number.unsure_where(answer, left.unsure | right.unsure)
    if scalar is Scalar.F32:
        return number.FLOAT_OPERATORS[op](left, right)
    value = INTEGER_OPERATORS[op](left.value, right.value)
    return number.unsure_where(wrap(value, scalar), left.unsure | right.unsure)


def _logic(op: str, left: BoundedArray, right: BoundedArray) -> BoundedArray:
    """Return `and` or `or` of two truth values that may be unknown.

    A known false makes `and` false, and a known true makes `or` true, whatever the other is.
    """
    stop = op == "or"
    decided = (~left.unsure & (left.value == stop)) | (
        ~right.unsure & (right.value == stop)
    )
    answer = (left.value | right.value) if stop else (left.value & right.value)
    unsure = (left.unsure | right.unsure) & ~decided
    return number.unsure_where(answer, unsure)
