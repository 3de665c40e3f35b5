"""Numbers of the interpreter: what a value should be, and how far off it may come out.

A `Real` is the value in exact arithmetic (a double), a bound on how far any f32
implementation that keeps WGSL's rules may be from it, and the size of the terms that
were added up to it, which WGSL allows to be added in any order.  Where every step is
exact in f32, in any order, the bound is 0.  Whatever no bound can be given for is a
`UndecidedError`: the example says nothing, and is counted.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Real: TypeAlias = tuple[float, float, float]
Value: TypeAlias = Real | int

ULP = 2.0**-23
"""One ulp of 1: WGSL lets a result be rounded up or down, not only to nearest."""

TINY = 2.0**-126
"""The least normal number; what is smaller may be flushed to zero."""

HIGHEST = 3.4028234663852886e38
DIVISION_ULPS = 2.5
HALF_ULP = 2.0**-10
HALF_TINY = 2.0**-14
HIGHEST_HALF = 65504.0
_MANTISSA = 2.0**24
_UNITS = (1.0, 2.0**12)
"""Numbers are tried as multiples of one and of 1 / 4096: sums of such are exact."""


class UndecidedError(Exception):
    """The example says nothing: its outcome hangs on rounding, or overflows."""


def to_f32(value: float) -> float:
    """Round to the nearest f32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError as error:
        raise UndecidedError("overflow") from error


def is_f32(value: float) -> bool:
    """Whether a double is an f32 as well."""
    if value.is_integer() and abs(value) <= _MANTISSA:
        return True
    return to_f32(value) == value and (abs(value) >= TINY or value == 0.0)


def settle(value: float, error: float, ulps: float = 1.0) -> Real:
    """Round the result of one operation whose operands bring `error`."""
    if error == 0.0 and is_f32(value):
        return value, 0.0, abs(value)
    return inexact(value, error, ulps)


def inexact(value: float, error: float, ulps: float, size: float = 0.0) -> Real:
    """Add an operation's own error, even if the exact result could be represented.

    `size` is what ulps are counted of, where that is more than the result.
    """
    size = max(abs(value) + error, size)
    if not size <= HIGHEST:
        raise UndecidedError("overflow")
    total = error + ulps * ULP * size
    return value, total + TINY if size < 2 * TINY else total, size


def bounds(value: Real | int) -> tuple[float, float]:
    """Return a value and how far off it may come out."""
    return value[:2] if isinstance(value, tuple) else (value, 0.0)


def leaf(value: float) -> Real:
    """Return an argument or a literal, rounded to f32."""
    rounded = to_f32(value)
    return rounded, 0.0, abs(rounded)


def to_half(operand: Real) -> Real:
    """Round to f16, as a tensor of that type does."""
    value, error, size = operand
    if abs(value) + error > HIGHEST_HALF:
        raise UndecidedError("overflow of f16")
    if error == 0.0 and struct.unpack("<e", struct.pack("<e", value))[0] == value:
        return operand
    return value, error + HALF_ULP * (abs(value) + error) + HALF_TINY, size


# Operators


def add(left: Real, right: Real) -> Real:
    """Add."""
    return _sum(left[0] + right[0], left, right)


def subtract(left: Real, right: Real) -> Real:
    """Subtract."""
    return _sum(left[0] - right[0], left, right)


def _sum(value: float, left: Real, right: Real) -> Real:
    size, error = left[2] + right[2], left[1] + right[1]
    if error == 0.0:
        if left[2] == 0.0 or right[2] == 0.0:
            return value, 0.0, size
        for unit in _UNITS:
            if (
                size * unit <= _MANTISSA
                and (left[0] * unit).is_integer()
                and (right[0] * unit).is_integer()
            ):
                return value, 0.0, size
    return inexact(value, error, 1.0, size + error)


def multiply(left: Real, right: Real) -> Real:
    """Multiply."""
    (a, da, _), (b, db, _) = left, right
    return settle(a * b, abs(a) * db + abs(b) * da + da * db)


def divide(left: Real, right: Real) -> Real:
    """Divide; whatever a divisor gives that may be 0, or above 2^126, is left open."""
    (a, da, _), (b, db, _) = left, right
    least = abs(b) - db
    if least < TINY:
        raise UndecidedError("division by zero")
    if abs(b) + db > 2.0**126:
        raise UndecidedError("division by what has no normal reciprocal")
    quotient = a / b
    return inexact(quotient, (da + abs(quotient) * db) / least, DIVISION_ULPS)


def remainder(left: Real, right: Real) -> Real:
    """Return what is left by the quotient's whole part; only exact operands will do."""
    (a, da, _), (b, db, _) = left, right
    if da or db or b == 0.0 or not (a.is_integer() and b.is_integer()):
        raise UndecidedError("inexact remainder")
    # x - y * trunc(x / y): a quotient that is nearly whole may come out on either side.
    if abs(a) > 1000 or abs(b) > 1000 or (a != 0 and math.fmod(a, b) == 0.0):
        raise UndecidedError("inexact remainder")
    return leaf(math.fmod(a, b))


def negate(operand: Real) -> Real:
    """Negate."""
    return -operand[0], operand[1], operand[2]


def order(left: Real, right: Real) -> int:
    """Return -1, 0 or 1; give up if rounding could decide."""
    (a, da, _), (b, db, _) = left, right
    if (da or db) and abs(a - b) <= (da + db) * 1.0001:
        raise UndecidedError("close comparison")
    return (a > b) - (a < b)


# Reductions


def total(terms: Sequence[Real]) -> Real:
    """Add up, in whatever order."""
    value = math.fsum(v for v, _, _ in terms)
    size = math.fsum(s for _, _, s in terms)
    error = math.fsum(e for _, e, _ in terms)
    if error == 0.0 and (len(terms) < 2 or _fits(terms, size)):
        return value, 0.0, size
    spread = len(terms) * ULP
    grown = (size + error) * spread / (1 - spread)
    return inexact(value, error + grown + len(terms) * TINY, 0.0, size)


def _fits(terms: Iterable[Real], size: float) -> bool:
    """Whether every partial sum is an f32: all are multiples of one small number."""
    return any(
        size * unit <= _MANTISSA and all((v * unit).is_integer() for v, _, _ in terms)
        for unit in _UNITS
    )


def product(terms: Sequence[Real]) -> Real:
    """Multiply, in whatever order."""
    value, most, grown, least = 1.0, 1.0, 1.0, 1.0
    for v, e, _ in terms:
        value *= v
        grown *= abs(v) + e
        most *= max(abs(v) + e, 1.0)
        least *= min(abs(v) - e, 1.0) if v else 1.0
    if most > HIGHEST or least < TINY:
        raise UndecidedError("overflow")
    exact = not any(e for _, e, _ in terms)
    if exact and most <= _MANTISSA and all(v.is_integer() for v, _, _ in terms):
        return value, 0.0, abs(value)
    spread = len(terms) * ULP
    error = (grown - abs(value)) + grown * spread / (1 - spread) + len(terms) * TINY
    return value, error, abs(value) + error


def highest(terms: Sequence[Real]) -> Real:
    """Return the largest; of none it is infinite, which is not followed."""
    return _extreme(max, terms)


def lowest(terms: Sequence[Real]) -> Real:
    """Return the smallest; of none it is infinite, which is not followed."""
    return _extreme(min, terms)


def _extreme(of: Callable[[Iterable[float]], float], terms: Sequence[Real]) -> Real:
    if not terms:
        raise UndecidedError("infinity")
    value = of(v for v, _, _ in terms)
    return value, max(e for _, e, _ in terms), abs(value)


# Integers


def wrap(value: int, type_: str) -> int:
    """Cut to 32 bits."""
    low = value & 0xFFFFFFFF
    return low - 2**32 if type_ == "i32" and low >= 2**31 else low


def integer_divide(left: int, right: int, type_: str) -> int:
    """Divide, rounding toward zero; x / 0 is x."""
    if right == 0:
        return left
    quotient = abs(left) // abs(right)
    return wrap(quotient if (left < 0) == (right < 0) else -quotient, type_)


def integer_remainder(left: int, right: int, type_: str) -> int:
    """Return the remainder, signed like the left; x % 0 is 0."""
    if right == 0:
        return 0
    return wrap(left - right * integer_divide(left, right, type_), type_)


def saturate(operand: Real, type_: str) -> int:
    """Truncate to an integer; saturate at the nearest f32 inside the range."""
    value, error, _ = operand
    low, high = (-(2**31), 2147483520) if type_ == "i32" else (0, 4294967040)
    ends = [min(max(math.trunc(value + d), low), high) for d in (-error, error)]
    if ends[0] != ends[1]:
        raise UndecidedError("close truncation")
    return ends[0]


def from_integer(value: int) -> Real:
    """Convert an integer to f32."""
    return settle(float(value), 0.0)
