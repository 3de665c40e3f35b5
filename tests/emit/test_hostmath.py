"""Host arithmetic: against NumPy where IEEE 754 rules, against WGSL's words elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.plan import hostmath

i32s = st.integers(-(2**31), 2**31 - 1)


@given(i32s, i32s.filter(bool))
def test_division_truncates(x: int, y: int) -> None:
    quotient, remainder = hostmath.idiv(x, y), hostmath.irem(x, y)
    assert quotient * y + remainder == x
    assert abs(remainder) < abs(y)
    assert remainder == 0 or (remainder < 0) == (x < 0)


@given(i32s)
def test_division_by_zero_is_wgsls(x: int) -> None:
    assert hostmath.idiv(x, 0) == x
    assert hostmath.irem(x, 0) == 0


@given(i32s, i32s.filter(bool))
def test_floored_division_is_numpys(x: int, y: int) -> None:
    assert hostmath.floor_div(x, y) == np.floor_divide(np.int64(x), np.int64(y))
    assert hostmath.mod(x, y) == np.mod(np.int64(x), np.int64(y))
    assert hostmath.floor_div(x, 0) == x
    assert hostmath.mod(x, 0) == 0


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_ceil_div(x: int, y: int) -> None:
    assert hostmath.ceil_div(x, y) * y >= x > (hostmath.ceil_div(x, y) - 1) * y


SPECIAL = [
    *(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 1024.0, 1e300, 1e-300, math.inf),
    *(-0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -7.0, -1024.0, -1e300, -math.inf, math.nan),
]
KNOWN = {(-0.0, 0.5), (-math.inf, 0.5)}
"""Here NumPy takes a square root for speed; IEEE 754 asks for 0 and infinity."""


def same(x: float, y: float) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y and math.copysign(1, x) == math.copysign(1, y)


def alike(x: float, y: float) -> bool:
    """Return whether two results differ by rounding at most."""
    return same(x, y) or (math.isfinite(x) and math.isclose(x, y, rel_tol=1e-15))


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (hostmath.divide, np.divide),
        (hostmath.remainder, np.fmod),
        (hostmath.power, np.power),
    ],
)
def test_special_values_of_two(
    ours: Callable[[float, float], float], numpys: np.ufunc
) -> None:
    with np.errstate(all="ignore"):
        for x in SPECIAL:
            for y in SPECIAL:
                if ours is hostmath.power and (x, y) in KNOWN:
                    continue
                assert alike(ours(x, y), float(numpys(x, y))), (x, y)


def test_powers_that_numpy_gets_wrong() -> None:
    assert same(hostmath.power(-0.0, 0.5), 0.0)
    assert same(hostmath.power(-math.inf, 0.5), math.inf)


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [(hostmath.exp, np.exp), (hostmath.log, np.log), (hostmath.sqrt, np.sqrt)],
)
def test_special_values_of_one(
    ours: Callable[[float], float], numpys: np.ufunc
) -> None:
    with np.errstate(all="ignore"):
        for x in SPECIAL:
            assert alike(ours(x), float(numpys(x))), x


@pytest.mark.parametrize(
    ("x", "i32", "u32"),
    [
        (1.9, 1, 1),
        (-1.9, -1, 0),
        (1e20, 2147483520, 4294967040),
        (-1e20, -(2**31), 0),
        (math.inf, 2147483520, 4294967040),
        (-math.inf, -(2**31), 0),
        (math.nan, 0, 0),
        (5, 5, 5),
    ],
)
def test_conversions_truncate_and_saturate(x: float, i32: int, u32: int) -> None:
    assert hostmath.to_i32(x) == i32
    assert hostmath.to_u32(x) == u32


def test_shift_counts_are_modulo_32() -> None:
    assert hostmath.shift_left(3, 33) == 6
    assert hostmath.shift_right(-8, 34) == -2


def test_extremes_keep_integers() -> None:
    assert repr(hostmath.maximum(3, 5)) == "5"
    assert repr(hostmath.minimum(3, 5)) == "3"
    assert repr(hostmath.absolute(-5)) == "5"
