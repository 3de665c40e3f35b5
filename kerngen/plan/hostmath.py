"""Host arithmetic of generated modules, in Python numbers.

Integers are exact, floats are doubles.  Where IEEE 754 or WGSL defines a result (a
division by zero, a power too large), so does this module; Python's own would raise.
"""

from __future__ import annotations

import math
from typing import SupportsAbs, TypeVar

_Number = TypeVar("_Number", bound=float)
_Absolute = TypeVar("_Absolute")

I32_MIN = -(2**31)
I32_MAX = 2**31 - 1
U32_MAX = 2**32 - 1
I32_LARGEST_F32 = 2147483520
"""The largest f32 within i32, 2^31 - 2^7: WGSL's conversion of a float saturates there.

An f32 has 24 bits of fraction, so that floats below 2^31 are 2^7 apart.
"""
U32_LARGEST_F32 = 4294967040
"""The largest f32 within u32, 2^32 - 2^8."""


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up; the denominator must be above 0."""
    return -(-numerator // denominator)


def idiv(numerator: int, denominator: int) -> int:
    """Return the quotient rounded toward zero; x / 0 is x."""
    if denominator == 0:
        return numerator
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def irem(numerator: int, denominator: int) -> int:
    """Return the remainder of `idiv`, signed like the numerator; x % 0 is 0."""
    if denominator == 0:
        return 0
    return numerator - idiv(numerator, denominator) * denominator


def floor_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded down; x / 0 is x."""
    return numerator // denominator if denominator else numerator


def mod(numerator: int, denominator: int) -> int:
    """Return the remainder of `floor_div`, signed like the denominator; x mod 0 is 0."""
    return numerator % denominator if denominator else 0


def shift_left(value: int, count: int) -> int:
    """Return `value << count`, the count taken modulo 32."""
    return value << (count & 31)


def shift_right(value: int, count: int) -> int:
    """Return `value >> count`, the count taken modulo 32."""
    return value >> (count & 31)


def divide(numerator: float, denominator: float) -> float:
    """Return the quotient; division by zero gives an infinity or NaN."""
    if denominator:
        return numerator / denominator
    if not numerator or math.isnan(numerator):
        return math.nan
    return math.copysign(math.inf, numerator) * math.copysign(1.0, denominator)


def remainder(numerator: float, denominator: float) -> float:
    """Return the remainder of truncating division, signed like the numerator."""
    try:
        return math.fmod(numerator, denominator)
    except ValueError:
        return math.nan


def power(base: float, exponent: float) -> float:
    """Return `base` to the power `exponent`; poles and overflow give infinities."""
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        # A negative base with a fraction, or else an infinity: its sign is the base's if the
        # exponent is odd, as of (-2.0)^1025 and (-0.0)^-1.
        if base < 0 and math.fmod(exponent, 1.0):
            return math.nan
        odd = math.fmod(exponent, 2.0) != 0.0 and not math.fmod(exponent, 1.0)
        return math.copysign(math.inf, base) if odd else math.inf


def exp(x: float) -> float:
    """Return e to the power x."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """Return the natural logarithm; of 0 it is minus infinity, below that NaN."""
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan


def sqrt(x: float) -> float:
    """Return the square root; of a negative number it is NaN."""
    return math.nan if x < 0 else math.sqrt(x)


def absolute(x: SupportsAbs[_Absolute]) -> _Absolute:
    """Return the number without its sign."""
    return abs(x)


def minimum(x: _Number, y: _Number) -> _Number:
    """Return the smaller number."""
    return min(x, y)


def maximum(x: _Number, y: _Number) -> _Number:
    """Return the larger number."""
    return max(x, y)


def to_i32(x: float) -> int:
    """Return x truncated; a float saturates at the nearest f32 within i32."""
    if isinstance(x, int):
        return x
    return 0 if math.isnan(x) else int(min(max(x, I32_MIN), I32_LARGEST_F32))


def wrap_i32(x: int) -> int:
    """Return an integer wrapped to 32 bits, signed."""
    return (x + 2**31) % 2**32 - 2**31


def wrap_u32(x: int) -> int:
    """Return an integer wrapped to 32 bits, unsigned."""
    return x % 2**32


def to_u32(x: float) -> int:
    """Return x truncated; a float saturates at the nearest f32 within u32."""
    if isinstance(x, int):
        return x
    return 0 if math.isnan(x) else int(min(max(x, 0), U32_LARGEST_F32))
