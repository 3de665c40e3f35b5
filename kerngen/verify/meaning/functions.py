"""Built-in functions on the oracle's numbers, with bounds from their accuracies.

All of a function is in its row of `kerngen.ir.builtins.table`: its NumPy text, which gives
the value; the domain in which its accuracy holds; and how errors of its arguments spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, Final, TypeAlias, assert_never

import numpy as np

from kerngen.ir.builtins.row import Builtin, Variation
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar
from kerngen.runtime import reference as ref
from kerngen.verify.meaning import number
from kerngen.verify.meaning.number import Array, BoundedArray

Function: TypeAlias = Callable[..., Any]


def _select(no: BoundedArray, yes: BoundedArray, chosen: BoundedArray) -> BoundedArray:
    return number.choose(chosen, yes, no)


def _fma(x: BoundedArray, y: BoundedArray, z: BoundedArray) -> BoundedArray:
    return number.add(number.multiply(x, y), z)


_COMPOSED: Final[Mapping[str, Callable[..., BoundedArray]]] = {
    "select": _select,
    "fma": _fma,
}
"""Built-ins that are operators of bounded numbers, whose bounds follow from those."""


@cache
def _function(template: str, arity: int) -> Function:
    """Return a row's NumPy template as a function of its arguments."""
    names = [f"x{place}" for place in range(arity)]
    text = f"lambda {', '.join(names)}: {template.format(*names)}"
    function: Function = eval(text, {"np": np, "ref": ref})  # noqa: S307 - our own text
    return function


def _apply(row: Builtin, values: Sequence[Array]) -> Array:
    return np.asarray(_function(row.numpy, row.arity)(*values))


def plain_value(name: str, values: Sequence[Array]) -> Array | None:
    """Return a built-in's values in float64; None for `select`, `fma` and tests of floats."""
    row = BUILTINS[name]
    if name in _COMPOSED or _is_test(row):
        return None
    return _apply(row, values).astype(np.float64)


def _is_test(row: Builtin) -> bool:
    """Whether a built-in takes floats and returns a bool or an integer, as `is_nan`."""
    first = row.overloads[0]
    return first.parameters[0] is Scalar.F32 and first.result is not Scalar.F32


def of_floats(name: str, arguments: Sequence[BoundedArray]) -> BoundedArray:
    """Apply a built-in to f32 numbers."""
    if name in _COMPOSED:
        return _COMPOSED[name](*arguments)
    row = BUILTINS[name]
    if _is_test(row):
        return _test(row, arguments)
    values = [np.where(np.isfinite(x.value), x.value, 0.0) for x in arguments]
    value = _apply(row, values).astype(np.float64)
    error = _spread(row, arguments, values, value)
    error = np.where(_inside(row, arguments, values), error, np.inf)
    if row.accuracy.is_rounded:
        return number.settle(value, error, np.where(error > 0, 0.0, 1.0))
    ulps = row.accuracy.ulps + row.accuracy.ulps_per_argument * np.abs(values[0]) + 1.0
    size = row.magnitude(*values) if row.magnitude else np.abs(value)
    own = row.accuracy.absolute + ulps * number.ULP * (size + error)
    return number.inexact(value, error + own, 0.0)


def _test(row: Builtin, arguments: Sequence[BoundedArray]) -> BoundedArray:
    """Apply a test of floats: unknown where an end of a bound gives another answer.

    NaN and infinities of arguments are known, as they reach the device as bits.
    """
    raw = [each.value for each in arguments]
    answer = _apply(row, raw)
    unsure = np.zeros(answer.shape, np.bool_)
    for each in arguments:
        unsure = unsure | (np.isfinite(each.value) & ~np.isfinite(each.error))
    for corner in _corners([*map(_bounded, arguments)], raw):
        unsure = unsure | (_apply(row, corner) != answer)
    return number.unsure_where(answer, unsure)


def _bounded(x: BoundedArray) -> BoundedArray:
    """Return a number without the bounds that are infinite."""
    return BoundedArray(x.value, np.where(np.isfinite(x.error), x.error, 0.0), x.size)


def _corners(
    arguments: Sequence[BoundedArray], values: Sequence[Array]
) -> Iterator[list[Array]]:
    """Yield the values with each at an end of its bound: all 2^n choices for n arguments."""
    for signs in product((-1, 1), repeat=len(values)):
        yield [
            value + sign * each.error
            for value, sign, each in zip(values, signs, arguments, strict=True)
        ]


def _inside(
    row: Builtin, arguments: Sequence[BoundedArray], values: Sequence[Array]
) -> Array:
    """Whether arguments are in the domain for which the accuracy of a function is given."""
    good = np.asarray(True)
    for (low, high), x, value in zip(row.intervals, arguments, values, strict=True):
        good = good & (value - x.error >= low) & (value + x.error <= high)
    if row.condition:
        for corner in _corners(arguments, values):
            good = good & row.condition(*corner)
    return np.asarray(good)


def _spread(
    row: Builtin,
    arguments: Sequence[BoundedArray],
    values: Sequence[Array],
    value: Array,
) -> Array:
    """Return how far results may be off because the arguments are.

    For functions that are monotone in each argument, the extremes are at the corners of
    the box that the arguments are in. A function with steps, as `floor`, is known only
    where no corner is on another step; one that may jump inside is not.
    """
    if row.variation is Variation.LIPSCHITZ:
        return np.asarray(sum(each.error for each in arguments))
    spread = np.zeros(value.shape)
    if not any(x.error.any() for x in arguments):
        return spread
    for corner in _corners(arguments, values):
        spread = np.maximum(spread, np.abs(_apply(row, corner) - value))
    spread = np.where(np.isnan(spread), np.inf, spread * 1.0001)
    off = np.asarray(sum(x.error for x in arguments) > 0)
    match row.variation:
        case Variation.MONOTONE:
            return spread
        case Variation.STEPS:
            return np.where(off & (spread > 0), np.inf, spread)
        case Variation.JUMPS:
            return np.where(off, np.inf, spread)
        case _:
            assert_never(row.variation)


# Integers

_DTYPES: Final = {Scalar.I32: np.int32, Scalar.U32: np.uint32, Scalar.BOOL: np.bool_}


def wrap(value: Array, scalar: Scalar) -> Array:
    """Return integers wrapped to 32 bits."""
    return value.astype(_DTYPES[scalar]).astype(np.int64)


def of_integers(
    name: str, arguments: Sequence[BoundedArray], scalar: Scalar
) -> BoundedArray:
    """Apply a built-in to integers, the first of them of type `scalar`."""
    if name in _COMPOSED:
        return _COMPOSED[name](*arguments)
    row = BUILTINS[name]
    types = row.overload(scalar).parameters
    pairs = zip(arguments, types, strict=True)
    values: list[Array] = [x.value.astype(_DTYPES[type_]) for x, type_ in pairs]
    unsure = np.asarray(sum(x.error for x in arguments) > 0)
    if row.condition:
        unsure = unsure | ~np.asarray(row.condition(*values))
    return number.unsure_where(_apply(row, values).astype(np.int64), unsure)


INTEGER_OPERATORS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": ref.idiv,
    "%": ref.irem,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": ref.shift_left,
    ">>": ref.shift_right,
}
"""Operators on integers of 64 bits; the lowest 32 bits are the result."""


def convert(operand: BoundedArray, source: Scalar, to: Scalar) -> BoundedArray:
    """Convert numbers by WGSL's rules; a NaN as an integer is 0."""
    if source is to:
        return operand
    if to is Scalar.F32:
        return number.settle(operand.value.astype(np.float64), operand.error)
    if source is not Scalar.F32:
        return number.unsure_where(
            wrap(operand.value.astype(np.int64), to), operand.unsure
        )
    # An argument that is not finite converts as WGSL defines it, so it counts as exact.
    bound = np.where(np.isfinite(operand.value), operand.error, 0.0)
    saturated = ref.i32 if to is Scalar.I32 else ref.u32
    least, value, most = (
        saturated(each).astype(np.int64)
        for each in (operand.value - bound, operand.value, operand.value + bound)
    )
    return number.unsure_where(value, (least != most) | ~np.isfinite(bound))
