"""The oracle's numbers: arrays of values, each with a bound on the f32 error.

A float is three numbers in float64:

- `value`, the exact result but for rounding in float64;
- `error`, a bound: no f32 implementation that keeps WGSL's accuracy rules is farther off;
- `size`, the sum of the magnitudes of the terms that were added up to it, as WGSL lets
  additions be done in any order: any partial sum may be as large.

    real(0.1) + real(0.2)    value 0.3, size 0.3, error 3.6e-8: one ulp of `size`

Where every step is exact in f32, the bound is 0.  Where nothing is known, it is infinite:
after an overflow or a NaN, or where rounding decides a comparison.  Integers and bools are
exact (bound 0) or unknown (bound infinite).

An infinity is known, with a bound of 0, as a literal and as the `max` or `min` of nothing:
these reach the device as bits.  It stays known where it is stored, chosen or negated;
`finite` makes it unknown for all other operations, as WGSL lets compilers assume that
there is none.

The leading axes of the arrays are those of the domain that an expression is computed
over, of length 1 where it does not depend on an index; components come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.ir.types import F16_MAX, F32_MAX, Scalar

Array: TypeAlias = NDArray[Any]

ULP: Final = 2.0**-23
"""One ulp of 1: WGSL lets a result be rounded up or down, not only to nearest."""
TINY: Final = 2.0**-126
"""The least normal number; smaller ones may be flushed to zero."""
HIGHEST: Final = F32_MAX
DIVISION_ULPS: Final = 2.5
"""WGSL's accuracy of `x / y`."""
LARGEST_DIVISOR: Final = 2.0**126
"""WGSL leaves larger ones undefined, whose reciprocals may be flushed to zero."""
HALF_ULP: Final = 2.0**-10
"""One ulp of 1 in f16."""
HALF_TINY: Final = 2.0**-14
"""The least normal f16."""
HIGHEST_HALF: Final = F16_MAX
_MANTISSA: Final = 2.0**24
"""Up to here, f32 represents every whole number."""
_UNITS: Final = (1.0, 2.0**12)
"""Sums are exact of multiples of 1 or of 1 / 4096, while their sizes stay small enough."""
_DTYPES: Final = {
    Scalar.F32: np.dtype(np.float64),
    Scalar.I32: np.dtype(np.int64),
    Scalar.U32: np.dtype(np.int64),
    Scalar.BOOL: np.dtype(np.bool_),
}


@final
@dataclass(frozen=True, slots=True)
class BoundedArray:
    """An array of values, each with a bound on its error and the size of terms added.

    Of `1000 - 999`, `value` is 1, `error` is 0 and `size` is 1999. The three arrays have
    one shape. An argument that is not finite keeps its value, but its bound is infinite.
    """

    value: Array
    error: Array
    size: Array

    def map(self, change: Callable[[Array], Array]) -> BoundedArray:
        """Return the number with `change` applied to each of its arrays."""
        return BoundedArray(change(self.value), change(self.error), change(self.size))

    def __getitem__(self, key: Any) -> BoundedArray:
        """Return some of the elements."""
        return self.map(lambda part: np.asarray(part[key]))

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of all axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.value.dtype

    def at(self, places: Sequence[Array]) -> BoundedArray:
        """Return the elements at positions, which broadcast against each other."""
        return self[tuple(places)]

    @property
    def unsure(self) -> Array:
        """Which integers or bools are unknown."""
        return np.asarray(self.error > 0)


def dtype_of(scalar: Scalar) -> np.dtype[Any]:
    """Return the dtype that values of a type are computed in."""
    return _DTYPES[scalar]


def known(values: ArrayLike) -> BoundedArray:
    """Return integers or bools as numbers whose values are certain."""
    exact = np.asarray(values)
    zeros = np.zeros(exact.shape)
    return BoundedArray(exact, zeros, zeros)


def unsure_where(values: ArrayLike, unsure: ArrayLike) -> BoundedArray:
    """Return integers or bools, some of them unknown."""
    exact, doubt = np.broadcast_arrays(values, unsure)
    error = np.where(doubt, np.inf, 0.0)
    return BoundedArray(exact, error, error)


def real(values: ArrayLike) -> BoundedArray:
    """Return arguments or literals, rounded to f32; subnormals may be flushed to 0."""
    with np.errstate(all="ignore"):
        value = np.asarray(values, np.float64).astype(np.float32).astype(np.float64)
    size = np.abs(value)
    error = np.where(size < TINY, size, 0.0)
    error = np.where(np.isfinite(value), error, np.inf)
    return BoundedArray(value, error, np.where(np.isfinite(size), size, np.inf))


def literal(value: float) -> BoundedArray:
    """Return a literal, which may be infinite."""
    number = real(value)
    return BoundedArray(
        number.value, np.where(np.isinf(value), 0.0, number.error), number.size
    )


def finite(operand: BoundedArray) -> BoundedArray:
    """Return numbers with infinite ones marked as unknown."""
    error = np.where(np.isinf(operand.value), np.inf, operand.error)
    return BoundedArray(operand.value, error, operand.size)


def unknown(shape: tuple[int, ...], scalar: Scalar) -> BoundedArray:
    """Return unknown numbers of a shape and type."""
    never = np.full(shape, np.inf)
    return BoundedArray(np.zeros(shape, dtype_of(scalar)), never, never.copy())


def joined(
    parts: Sequence[BoundedArray], change: Callable[[list[Array]], Array]
) -> BoundedArray:
    """Return the number that `change` makes of the arrays of several numbers."""
    return BoundedArray(
        change([part.value for part in parts]),
        change([part.error for part in parts]),
        change([part.size for part in parts]),
    )


# Rounding


def _bounded(value: Array, error: Array, size: Array) -> BoundedArray:
    """Return numbers, unknown where one is not finite or may overflow."""
    good = np.isfinite(value) & np.isfinite(error) & (size <= HIGHEST)
    return BoundedArray(
        np.where(good, value, 0.0),
        np.where(good, error, np.inf),
        np.where(good, size, np.inf),
    )


def _exact_where(
    exact: Array, value: Array, size: Array, rough: BoundedArray
) -> BoundedArray:
    """Return `value` without error where `exact` is true, and `rough` elsewhere."""
    exact = exact & np.isfinite(value) & (size <= HIGHEST)
    return BoundedArray(
        np.where(exact, value, rough.value),
        np.where(exact, 0.0, rough.error),
        np.where(exact, size, rough.size),
    )


def is_f32(value: Array) -> Array:
    """Whether values are 0 or normal f32 numbers exactly."""
    with np.errstate(all="ignore"):
        same = value.astype(np.float32).astype(np.float64) == value
    return np.asarray(same & ((np.abs(value) >= TINY) | (value == 0)))


def settle(value: Array, error: Array, ulps: ArrayLike = 1.0) -> BoundedArray:
    """Return the results of one operation that is rounded by at most `ulps`.

    `error` is how far they may be off because the operands are. Without such an error, a
    value that f32 represents is exact.
    """
    exact = (error == 0) & is_f32(value)
    return _exact_where(exact, value, np.abs(value), inexact(value, error, ulps))


def inexact(
    value: Array, error: Array, ulps: ArrayLike, size: ArrayLike = 0.0
) -> BoundedArray:
    """Return results with an operation's own error added to that of its operands.

    Ulps are those of `size`, if that is larger than the result.
    """
    most = np.maximum(np.abs(value) + error, size)
    total = error + np.asarray(ulps) * ULP * most
    # What may be subnormal may be flushed to 0: so may the small difference of large numbers.
    near = np.abs(value) - error < TINY
    flushed = np.where(near, np.maximum(total, np.abs(value)), total)
    return _bounded(value, np.where(most < 2 * TINY, total + TINY, flushed), most)


def to_half(operand: BoundedArray) -> BoundedArray:
    """Return numbers rounded to f16."""
    value, error = operand.value, operand.error
    most = np.abs(value) + error
    with np.errstate(all="ignore"):
        exact = (error == 0) & (value.astype(np.float16).astype(np.float64) == value)
    rounded = error + HALF_ULP * most + HALF_TINY
    rounded = np.where(most > HIGHEST_HALF, np.inf, rounded)
    return BoundedArray(value, np.where(exact, error, rounded), operand.size)


# Operators


def negate(operand: BoundedArray) -> BoundedArray:
    """Return the negated number."""
    return BoundedArray(-operand.value, operand.error, operand.size)


def add(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    """Return the sum of two numbers."""
    value = left.value + right.value
    size, error = left.size + right.size, left.error + right.error
    exact = (left.size == 0) | (right.size == 0)
    for unit in _UNITS:
        whole = _is_whole(left.value * unit) & _is_whole(right.value * unit)
        exact |= whole & (size * unit <= _MANTISSA)
    exact &= error == 0
    rough = inexact(value, error, 1.0, size + error)
    return _exact_where(exact, value, size, rough)


def _is_whole(value: Array) -> Array:
    return np.asarray(np.floor(value) == value)


def subtract(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    """Return the difference of two numbers."""
    return add(left, negate(right))


def multiply(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    """Return the product of two numbers."""
    a, b, da, db = left.value, right.value, left.error, right.error
    return settle(a * b, np.abs(a) * db + np.abs(b) * da + da * db)


def divide(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    """Return the quotient; unknown where the divisor may be 0 or too large."""
    a, b, da, db = left.value, right.value, left.error, right.error
    least, most = np.abs(b) - db, np.abs(b) + db
    quotient = a / b
    undefined = (least < TINY) | (most > LARGEST_DIVISOR)
    error = np.where(undefined, np.inf, (da + np.abs(quotient) * db) / least)
    return inexact(quotient, error, DIVISION_ULPS)


def remainder(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    """Return the remainder of a division; only exact operands give a known one.

    WGSL computes x - y * trunc(x / y): a quotient that is nearly whole may come out on
    either side.
    """
    # A quotient of whole numbers up to 1000 that is not whole is at least 1 / 1000 from
    # the next whole number: more than the 2.5 ulps (1.5e-4) by which it may be off.
    a, b = left.value, right.value
    rest = np.fmod(a, b)
    # By 0 the rest is NaN, which `_bounded` makes unknown.
    good = (left.error == 0) & (right.error == 0)
    good &= _is_whole(a) & _is_whole(b) & (np.abs(a) <= 1000) & (np.abs(b) <= 1000)
    good &= (a == 0) | (rest != 0)
    return _bounded(rest, np.where(good, 0.0, np.inf), np.abs(rest))


FLOAT_OPERATORS: Final[
    dict[str, Callable[[BoundedArray, BoundedArray], BoundedArray]]
] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
}


def compare(
    left: BoundedArray, right: BoundedArray, relation: np.ufunc
) -> BoundedArray:
    """Return a comparison; unknown where rounding could decide it."""
    spread = left.error + right.error
    with np.errstate(all="ignore"):
        close = np.abs(left.value - right.value) <= spread * 1.0001
    return unsure_where(
        relation(left.value, right.value),
        (spread > 0) & (close | ~np.isfinite(spread)),
    )


def choose(
    condition: BoundedArray, then: BoundedArray, otherwise: BoundedArray
) -> BoundedArray:
    """Return `then` or `otherwise`; where the condition is unknown, a bound for both."""
    with np.errstate(all="ignore"):
        apart = np.abs(np.subtract(then.value, otherwise.value, dtype=np.float64))
        either = apart + np.maximum(then.error, otherwise.error)
    either = np.where(np.isnan(either), np.inf, either)
    if then.value.dtype != np.float64:
        either = np.where(either > 0, np.inf, 0.0)
    unsure, chosen = condition.unsure, condition.value
    value = np.where(chosen, then.value, otherwise.value)
    # Where the condition is unknown, an infinity is replaced: `_extreme` passes over a
    # neutral infinity as known, and this one is not.
    lost = unsure & np.isinf(value)
    return BoundedArray(
        np.where(lost, np.zeros_like(value), value),
        np.where(unsure, either, np.where(chosen, then.error, otherwise.error)),
        np.where(
            unsure,
            np.maximum(then.size, otherwise.size),
            np.where(chosen, then.size, otherwise.size),
        ),
    )


# Reductions, over the first `axes` axes of their terms


@final
@dataclass(frozen=True, slots=True)
class Join:
    """How terms are reduced: along the first `axes`, or to all `running` prefixes.

    Of n terms there are n + 1 prefixes, the first one empty: the running sums of 1, 2, 3
    are 0, 1, 3, 6.
    """

    axes: int = 1
    running: bool = False

    def __call__(self, function: np.ufunc, terms: Array, start: float) -> Array:
        """Return terms reduced by a function whose neutral value is `start`."""
        if not self.running:
            over = tuple(range(self.axes))
            return np.asarray(function.reduce(terms, axis=over, initial=start))
        first = np.full((1, *terms.shape[1:]), start, terms.dtype)
        joined: Array = function.accumulate(np.concatenate((first, terms)), axis=0)
        return joined

    def count(self, terms: Array) -> Array:
        """Return the number of terms of each result."""
        if not self.running:
            return np.asarray(np.prod(terms.shape[: self.axes], dtype=np.int64))
        counts = np.arange(len(terms) + 1)
        return counts.reshape(-1, *(1,) * (terms.ndim - 1))


def total(terms: BoundedArray, join: Join) -> BoundedArray:
    """Return the sum of terms, valid for any order of additions."""
    count = join.count(terms.value)
    value, size, error = (
        join(np.add, part, 0.0) for part in (terms.value, terms.size, terms.error)
    )
    exact = np.broadcast_to(count < 2, value.shape)
    for unit in _UNITS:
        whole = join(np.logical_and, _is_whole(terms.value * unit), True)
        exact = exact | (whole & (size * unit <= _MANTISSA))
    exact = exact & (error == 0)
    # The usual bound of n additions in any order, n u / (1 - n u) times the sum of the
    # magnitudes; n u is capped, where the formula would divide by 0.
    spread = np.minimum(count * ULP, 0.5)
    grown = (size + error) * spread / (1 - spread)
    rough = inexact(value, error + grown + count * TINY, 0.0, size)
    return _exact_where(exact, value, size, rough)


def product(terms: BoundedArray, join: Join) -> BoundedArray:
    """Return the product of terms, valid for any order of multiplications.

    Some order multiplies all factors above 1 first, or all below: where that could
    overflow or become subnormal, nothing is known.
    """
    count = join.count(terms.value)
    v, e = terms.value, terms.error

    def joined(factors: Array) -> Array:
        return join(np.multiply, factors, 1.0)

    # `most` and `least`: the extremes of all partial products, in any order.
    value, grown = joined(v), joined(np.abs(v) + e)
    most = joined(np.maximum(np.abs(v) + e, 1.0))
    least = joined(np.where(v == 0, 1.0, np.minimum(np.abs(v) - e, 1.0)))
    exact = join(np.logical_and, (e <= 0) & _is_whole(v), True) & (most <= _MANTISSA)
    spread = np.minimum(count * ULP, 0.5)
    error = (grown - np.abs(value)) + grown * spread / (1 - spread) + count * TINY
    error = np.where(least < TINY, np.inf, error)
    size = np.where(exact, np.abs(value), most)
    return _bounded(value, np.where(exact, 0.0, error), size)


def highest(terms: BoundedArray, join: Join) -> BoundedArray:
    """Return the largest; of none, minus infinity."""
    return _extreme(terms, join, np.maximum, -np.inf)


def lowest(terms: BoundedArray, join: Join) -> BoundedArray:
    """Return the smallest; of none, infinity."""
    return _extreme(terms, join, np.minimum, np.inf)


def first_best(
    terms: BoundedArray, holds: BoundedArray, *, least: bool
) -> BoundedArray:
    """Return the first position of the greatest or least term where `holds`.

    The position is along the first axis, and -1 if no term counts. It is known if no
    other term may be better, or equal and earlier.

        values 1, 3, 3, errors 0      place 1, known
        values 1, 3, 3, errors 0.1    place 1, unknown: the last may be greater
    """
    value, counts = terms.value.astype(np.float64), np.asarray(holds.value)
    value = -value if least else value
    with np.errstate(invalid="ignore"):
        low, high = value - terms.error, value + terms.error
    # The first best term by values; it is safe if each other term is lower even at the
    # upper end of its bound, or may be equal and comes later.
    best = np.where(counts, value, -np.inf).max(0, initial=-np.inf)
    is_best = counts & (value == best)
    place = is_best.argmax(0) if len(value) else np.zeros(best.shape, np.int64)
    number = np.arange(len(value)).reshape(-1, *(1 for _ in best.shape))
    own = np.where(number == place, low, -np.inf).max(0, initial=-np.inf)
    safe = (high < own) | ((high == own) & (number > place)) | (number == place)
    unsure = (counts & (~safe | np.isnan(low))).any(0) | holds.unsure.any(0)
    return unsure_where(np.where(is_best.any(0), place, -1), unsure)


def _extreme(
    terms: BoundedArray, join: Join, extreme: np.ufunc, start: float
) -> BoundedArray:
    # A term that is the neutral value, as -inf of `max`, changes nothing and is known.
    neutral = terms.value == start
    nothing = join(np.logical_and, neutral & (terms.error == 0), True)
    off = np.where(neutral, 0.0, terms.error)
    off = np.where(np.isinf(terms.value) & ~neutral, np.inf, off)
    clean = np.where(np.isfinite(terms.value) | neutral, terms.value, 0.0)

    def reduced(values: Array) -> Array:
        return join(extreme, values, start)

    value = reduced(clean)
    low, high = reduced(clean - off), reduced(clean + off)
    with np.errstate(invalid="ignore"):
        error = np.maximum(high - value, value - low)
    found = _bounded(value, error, np.abs(value))
    return BoundedArray(
        np.where(nothing, start, found.value),
        np.where(nothing, 0.0, found.error),
        found.size,
    )
