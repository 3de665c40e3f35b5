"""The helpers of NumPy references, against loops over Python's integers and doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from kerngen.runtime import reference as ref

Array = NDArray[Any]
MASK = 2**32 - 1

i32_arrays = hnp.arrays(np.int32, st.integers(0, 20))
u32_arrays = hnp.arrays(np.uint32, st.integers(0, 20))
int_arrays = st.one_of(i32_arrays, u32_arrays)


def wrap(x: int, dtype: np.dtype[Any]) -> int:
    """Return what 32 bits make of an integer."""
    bits = x & MASK
    return bits - 2**32 if dtype == np.int32 and bits >= 2**31 else bits


def each(by_hand: Callable[[int], int], x: Array) -> Array:
    """Apply a function of integers to each, wrapping as the type does."""
    return np.array([wrap(by_hand(a), x.dtype) for a in x.tolist()], x.dtype)


def each_pair(by_hand: Callable[[int, int], int], x: Array, y: Array) -> Array:
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([wrap(by_hand(a, b), x.dtype) for a, b in pairs], x.dtype)


def assert_same(got: Array, expected: Array) -> None:
    assert got.dtype == expected.dtype
    assert got.tolist() == expected.tolist()


def trunc_div(x: int, y: int) -> int:
    return x if y == 0 else math.trunc(x / y)


pairs = st.one_of(
    *(
        st.tuples(
            hnp.arrays(dtype, 12, elements=hnp.from_dtype(np.dtype(dtype))),
            hnp.arrays(dtype, 12, elements=st.integers(low, 5)),
        )
        for dtype, low in ((np.int32, -5), (np.uint32, 0))
    )
)


@given(pairs)
def test_integer_division(pair: tuple[Array, Array]) -> None:
    x, y = pair
    assert_same(ref.idiv(x, y), each_pair(trunc_div, x, y))
    remainders = each_pair(lambda a, b: 0 if b == 0 else a - trunc_div(a, b) * b, x, y)
    assert_same(ref.irem(x, y), remainders)


def test_the_one_division_that_overflows() -> None:
    lowest, minus_one = np.array([-(2**31)], np.int32), np.array([-1], np.int32)
    assert_same(ref.idiv(lowest, minus_one), lowest)
    assert_same(ref.irem(lowest, minus_one), np.array([0], np.int32))


def test_division_takes_the_arrays_type_with_a_number() -> None:
    assert_same(ref.idiv(np.array([7, -7], np.int32), 2), np.array([3, -3], np.int32))
    assert_same(ref.irem(np.array([7, 9], np.uint32), 4), np.array([3, 1], np.uint32))


@given(int_arrays, st.integers(0, 100))
def test_shifts(x: Array, count: int) -> None:
    counts = np.full(x.shape, count, np.uint32)
    assert_same(ref.shift_left(x, counts), each(lambda a: a << count % 32, x))
    assert_same(ref.shift_right(x, counts), each(lambda a: a >> count % 32, x))


def bits_of(x: int) -> str:
    return format(x & MASK, "032b")


def leading_bit(x: int, dtype: np.dtype[Any]) -> int:
    bits = bits_of(~x if dtype == np.int32 and x < 0 else x)
    return 31 - bits.index("1") if "1" in bits else -1


def check_bits(x: Array) -> None:
    assert_same(ref.count_one_bits(x), each(lambda a: bits_of(a).count("1"), x))
    leading = each(lambda a: 32 - len(bits_of(a).lstrip("0")), x)
    assert_same(ref.count_leading_zeros(x), leading)
    trailing = each(lambda a: 32 - len(bits_of(a).rstrip("0")), x)
    assert_same(ref.count_trailing_zeros(x), trailing)
    assert_same(ref.reverse_bits(x), each(lambda a: int(bits_of(a)[::-1], 2), x))
    assert_same(ref.first_leading_bit(x), each(lambda a: leading_bit(a, x.dtype), x))
    first = each(lambda a: bits_of(a)[::-1].find("1"), x)
    assert_same(ref.first_trailing_bit(x), first)


@given(int_arrays)
def test_bit_counts(x: Array) -> None:
    check_bits(x)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_bit_counts_of_the_corners(dtype: type[np.int32 | np.uint32]) -> None:
    x = np.array([0, MASK, 1, 2**31, 2**31 - 1], np.uint32).astype(dtype)
    check_bits(x)


def extract(x: int, offset: int, count: int, *, signed: bool) -> int:
    start = min(offset, 32)
    width = min(count, 32 - start)
    field = (x & MASK) >> start & (1 << width) - 1
    if signed and width and field >> width - 1:
        field -= 1 << width
    return field


def insert(x: int, new: int, offset: int, count: int) -> int:
    start = min(offset, 32)
    width = min(count, 32 - start)
    mask = (1 << width) - 1 << start
    return (x & ~mask) | (new << start & mask)


places = st.one_of(st.integers(0, 40), st.integers(0, MASK))


@given(int_arrays, places, places)
def test_bit_fields(x: Array, offset: int, count: int) -> None:
    signed = x.dtype == np.int32
    at, width = np.uint32(offset), np.uint32(count)
    expected = each(lambda a: extract(a, offset, count, signed=signed), x)
    assert_same(ref.extract_bits(x, at, width), expected)
    new = x[::-1].copy()
    expected = each_pair(lambda a, b: insert(a, b, offset, count), x, new)
    assert_same(ref.insert_bits(x, new, at, width), expected)


def test_conversions_saturate_at_the_nearest_f32() -> None:
    x = np.array(
        [1.9, -1.9, 1e20, -1e20, np.inf, -np.inf, 2147483520, 4294967040], np.float32
    )
    assert ref.i32(x).tolist() == [
        *(1, -1, 2147483520, -2147483648),
        *(2147483520, -2147483648, 2147483520, 2147483520),
    ]
    assert ref.u32(x).tolist() == [
        *(1, 0, 4294967040, 0),
        *(4294967040, 0, 2147483520, 4294967040),
    ]
    for convert in (ref.i32, ref.u32):
        assert convert(x.astype(np.float64)).tolist() == convert(x).tolist()
        assert convert(np.float32(np.nan)).tolist() == 0


def test_conversions_between_integers_keep_the_bits() -> None:
    assert_same(ref.u32(np.array([-1, 5], np.int32)), np.array([MASK, 5], np.uint32))
    assert_same(ref.i32(np.array([MASK, 5], np.uint32)), np.array([-1, 5], np.int32))
    assert_same(ref.i32(np.array([True, False])), np.array([1, 0], np.int32))
    assert_same(ref.i32(7), np.array(7, np.int32))


@pytest.mark.parametrize(
    ("arrays", "dtype"),
    [
        ((), np.float32),
        (([1, 2],), np.float32),
        ((np.array([1], np.float16),), np.float32),
        ((np.array([1], np.float32), np.array([1], np.float64)), np.float64),
        ((np.array([1], np.int64),), np.float32),
    ],
)
def test_real_follows_the_arrays(arrays: tuple[Any, ...], dtype: type[Any]) -> None:
    real = ref.real(*arrays)
    assert real.dtype == dtype
    assert real([1, 2]).dtype == dtype


def test_real_copies_only_to_convert() -> None:
    x = np.array([1, 2], np.float32)
    assert ref.real(x)(x) is x


@given(hnp.arrays(np.int32, 8, elements=st.integers(-9, 9)), st.integers(1, 6))
def test_gathers_clamp(places: Array, length: int) -> None:
    x = np.arange(3 * length).reshape(3, length)
    clamped = [min(max(s, 0), length - 1) for s in places.tolist()]
    assert ref.take(x, places, 1).tolist() == x[:, clamped].tolist()
    assert ref.at(x, 1, places).tolist() == x[1, clamped].tolist()


def test_gathers_clamp_u32_beyond_i32() -> None:
    places = np.array([MASK, 0], np.uint32)
    assert ref.take(np.arange(5), places, 0).tolist() == [4, 0]
    assert ref.at(np.arange(5), places).tolist() == [4, 0]


def test_gathers_from_an_empty_axis_keep_their_shape() -> None:
    x = np.zeros((2, 0, 3), np.float32)
    places = np.zeros((4, 5), np.int32)
    assert ref.take(x, places, 1).shape == (2, 4, 5, 3)
    assert ref.at(x, 1, places, 0).shape == (4, 5)
    assert ref.at(x, 1, places, 0).dtype == np.float32


def test_filled_is_new_and_broadcast() -> None:
    x = np.array([1, 2], np.float32)
    y = ref.filled(x[:, None], (2, 3), np.float32)
    assert y.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert not np.shares_memory(x, y)
    assert ref.filled(3.0, (), np.float32).shape == ()


@given(hnp.arrays(np.float64, 9, elements=st.floats(-7, 7)))
def test_erf_is_exact_to_a_double(x: Array) -> None:
    expected = [math.erf(value) for value in x.tolist()]
    assert np.allclose(ref.erf(x), expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_floats_keep_the_type(dtype: type[Any]) -> None:
    x = np.array([0.1, -2.5, 3.0], dtype)
    zero, one = dtype(0), dtype(1)
    for y in (
        ref.erf(x),
        ref.erf(x[:0]),
        ref.quantize_to_f16(x),
        ref.smoothstep(zero, one, x),
        ref.ldexp(x, np.int32(2)),
    ):
        assert y.dtype == dtype


def test_smoothstep_quantize_and_ldexp() -> None:
    x = np.array([-1, 0, 0.25, 0.5, 1, 2], np.float64)
    stepped = ref.smoothstep(np.float64(0), np.float64(1), x)
    assert stepped.tolist() == [0, 0, 0.15625, 0.5, 1, 1]
    assert ref.quantize_to_f16(np.array([1 / 3], np.float64)).tolist() == [
        0.333251953125
    ]
    assert ref.ldexp(np.array([3], np.float32), np.array([4], np.int32)).tolist() == [
        48
    ]
