"""The functions that generated NumPy references call: WGSL's rules for whole arrays.

Arrays keep the kernel's types: `real` (float32, or float64 when the caller's arrays
are), int32 and uint32.  Integer arithmetic wraps, and each element is computed by itself: no
element is computed in another way because of the value of another element.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kerngen.plan.hostmath import (
    I32_LARGEST_F32,
    I32_MAX,
    I32_MIN,
    U32_LARGEST_F32,
    U32_MAX,
)

Array: TypeAlias = NDArray[Any]

HIGHEST_I32 = I32_MAX
LOWEST_I32 = I32_MIN
HIGHEST_U32 = U32_MAX
LOWEST_U32 = 0

# Types


@final
@dataclass(frozen=True, slots=True)
class Real:
    """The float type of a reference's arithmetic; calling it converts to that type."""

    dtype: np.dtype[Any]

    def __call__(self, x: ArrayLike) -> Array:
        """Return x as an array of this type, without a copy if it has it already."""
        return np.asarray(x, dtype=self.dtype)

    @property
    def half(self) -> np.dtype[Any]:
        """The dtype of values that kernels store as f16.

        It is float16 beside float32; float64 stays float64.
        """
        return np.dtype(np.float16) if self.dtype == np.float32 else self.dtype

    def halved(self, x: ArrayLike) -> Array:
        """Return x rounded to `half` and back, as if a kernel had stored and read it."""
        return self(np.asarray(x, dtype=self.half))


DOUBLE = Real(np.dtype(np.float64))
"""The float type of host expressions, which are computed in double."""


def real(*arrays: ArrayLike) -> Real:
    """Return the float type of a reference's arithmetic for these arguments.

    It is float64 if an array is float64 or a block of `in_double()` is open, else float32.
    """
    wide = _IN_DOUBLE.get() or any(
        np.asarray(array).dtype == np.float64 for array in arrays
    )
    return Real(np.dtype(np.float64 if wide else np.float32))


_IN_DOUBLE: ContextVar[bool] = ContextVar("in_double", default=False)
"""Whether a block of `in_double()` is open, in this thread or task."""


@contextmanager
def in_double() -> Generator[None]:
    """Compute all references in float64 within this block, whatever the arguments' types.

    Outside of it, members of structs keep their own float types.
    """
    token = _IN_DOUBLE.set(True)
    try:
        yield
    finally:
        _IN_DOUBLE.reset(token)


def kept(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype for records of a struct: `doubled` within `in_double()`."""
    return doubled(dtype) if _IN_DOUBLE.get() else dtype


def doubled(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype with all of its floats replaced by float64."""
    if dtype.names is not None:
        return np.dtype([(name, doubled(dtype[name])) for name in dtype.names])
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((doubled(base), shape))
    return np.dtype(np.float64) if dtype.kind == "f" else dtype


def i32(x: ArrayLike) -> Array:
    """Convert to i32: integers wrap, floats truncate and saturate; of NaN it is 0."""
    return _integer(x, np.int32, I32_MIN, I32_LARGEST_F32)


def u32(x: ArrayLike) -> Array:
    """Convert to u32: integers wrap, floats truncate and saturate; of NaN it is 0."""
    return _integer(x, np.uint32, 0, U32_LARGEST_F32)


def _integer(x: ArrayLike, dtype: DTypeLike, lowest: int, highest: int) -> Array:
    values = np.asarray(x)
    if values.dtype.kind != "f":
        return values.astype(dtype, copy=False)
    # In double, in which the limits of i32 and u32 are exact.
    numbers = np.where(np.isnan(values), 0, values).astype(np.float64)
    return np.asarray(np.clip(numbers, lowest, highest)).astype(dtype)


# Shapes and subscripts


def index(length: int) -> Array:
    """Return the values 0 to `length - 1` of an index, as int32."""
    return np.arange(length, dtype=np.int32)


def take(x: Array, places: ArrayLike, axis: int) -> Array:
    """Return the elements of `x` at `places` along an axis; zeros if the axis is empty.

    Places outside of the axis are clamped to it.
    """
    wide = np.asarray(places, np.int64)
    if x.shape[axis]:
        return np.take(x, wide, axis, mode="clip")
    return np.zeros((*x.shape[:axis], *wide.shape, *x.shape[axis + 1 :]), x.dtype)


def at(x: Array, *places: ArrayLike) -> Array:
    """Return the elements of `x` at `places`, one per axis; zeros if `x` is empty.

    Places are clamped to their axes.  The axes of vectors, which come after those with places,
    are kept.
    """
    wide = [np.asarray(place, np.int64) for place in places]
    if x.size:
        pairs = zip(wide, x.shape, strict=False)
        return _array(x[tuple(np.clip(part, 0, length - 1) for part, length in pairs)])
    around = np.broadcast_shapes(*(part.shape for part in wide))
    return np.zeros((*around, *x.shape[len(places) :]), x.dtype)


def store(x: Array, value: ArrayLike, *places: ArrayLike) -> None:
    """Store a value in x, at `places`: an i32 or u32 for each axis of x.

    Nothing is stored where a place is outside of its axis.  The axes of vectors, which have no
    places, are kept.
    """
    wide = [np.asarray(place, np.int64) for place in places]
    around = np.broadcast_shapes(*(part.shape for part in wide))
    inside = np.ones(around, bool)
    for part, length in zip(wide, x.shape, strict=False):
        inside = inside & (part >= 0) & (part < length)
    whole = np.broadcast_to(value, (*around, *x.shape[len(places) :]))
    x[tuple(np.broadcast_to(part, around)[inside] for part in wide)] = whole[inside]


def filled(value: ArrayLike, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return a new array of this shape and type, with `value` broadcast to it."""
    result = np.empty(shape, dtype)
    result[...] = value
    return result


def spread(value: ArrayLike, *others: ArrayLike) -> Array:
    """Return a new array: `value`, broadcast to its common shape with `others`."""
    return np.broadcast_arrays(value, *others)[0].copy()


# Reductions by key, over ranges, and of prefixes: see `kerngen.emit.reference.keyed`


def scatter(
    join: np.ufunc, total: Array, keys: tuple[ArrayLike, ...], terms: ArrayLike
) -> Array:
    """Join each term with the element of `total` that its keys choose, in order.

    Keys are places along the first axes of `total`; a term with a key outside of its axis is
    left out.  Terms have the axes of the keys, then the others of `total`.  Floats are joined
    in double.
    """
    chosen, some, _ = _by_keys(total.shape, keys, np.asarray(terms, total.dtype))
    joined = total.astype(_wide(total.dtype))
    join.at(joined, chosen, some)
    return joined.astype(total.dtype)


def keyed_places(
    join: np.ufunc,
    shape: tuple[int, ...],
    keys: tuple[ArrayLike, ...],
    terms: ArrayLike,
    where: ArrayLike = True,
) -> Array:
    """Return for each bin the first place of the greatest term whose keys are the bin's.

    With `np.minimum` as `join`, it is the place of the least term; for a bin without terms it
    is -1.  A NaN is found before any number.  The axes are as in `scatter`; places are counted
    along the last axis of the keys.
    """
    # The best term of each bin, from the worst value on.
    chosen, some, numbers = _by_keys(shape, keys, np.asarray(terms), where)
    limits = np.finfo if some.dtype.kind == "f" else np.iinfo
    limit = limits(some.dtype).min if join is np.maximum else limits(some.dtype).max
    best = np.full(
        shape, limit * np.inf if some.dtype.kind == "f" else limit, some.dtype
    )
    join.at(best, chosen, some)
    # The least place among the terms that equal it; a NaN is best wherever it is.
    is_best = (some == best[chosen]) | np.isnan(some)
    along = np.reshape(numbers, (-1, *(1,) * (some.ndim - 1)))
    found = np.full(shape, HIGHEST_I32, np.int32)
    np.minimum.at(found, chosen, np.where(is_best, along, HIGHEST_I32))
    return np.where(found == HIGHEST_I32, np.int32(-1), found)


def _by_keys(
    shape: tuple[int, ...],
    keys: tuple[ArrayLike, ...],
    terms: Array,
    where: ArrayLike = True,
) -> tuple[tuple[Array, ...], Array, Array]:
    """Return where terms belong, the terms that belong somewhere, and their places."""
    places = [np.asarray(key, np.int64) for key in keys]
    rest = shape[len(keys) :]
    shapes = [(*place.shape, *(1 for _ in rest)) for place in places]
    whole = np.broadcast_shapes(*shapes, terms.shape, rest)
    around = whole[: len(whole) - len(rest)]
    inside = np.broadcast_to(where, around).copy()
    for place, length in zip(places, shape, strict=False):
        inside &= (place >= 0) & (place < length)
    chosen = tuple(np.broadcast_to(place, around)[inside] for place in places)
    return chosen, np.broadcast_to(terms, whole)[inside], np.nonzero(inside)[-1]


def ranges(
    join: np.ufunc,
    total: Array,
    begins: tuple[ArrayLike, ...],
    ends: tuple[ArrayLike, ...],
    terms: Array,
) -> Array:
    """Join each element of `total` with the terms of its own range, in order.

    A range goes from the largest of `begins` up to the least of `ends`, cut to the terms that
    exist; it may be empty.  Terms have one axis, then the last axes of `total`.
    """
    rows, rest = total.shape[: total.ndim + 1 - terms.ndim], terms.shape[1:]
    from_, to = (
        np.broadcast_to(each, rows).ravel().clip(0, len(terms))
        for each in (
            reduce(np.maximum, (np.asarray(x, np.int64) for x in begins)),
            reduce(np.minimum, (np.asarray(x, np.int64) for x in ends)),
        )
    )
    # The terms of all ranges one after another: begins (0, 4) and ends (2, 7) have the rows
    # 0 0 1 1 1 and the terms 0 1 4 5 6.
    counts = np.maximum(to - from_, 0)
    row = np.repeat(np.arange(len(counts)), counts)
    term = np.arange(len(row)) + np.repeat(from_ - (np.cumsum(counts) - counts), counts)
    joined = total.reshape(len(counts), *rest).astype(_wide(total.dtype))
    join.at(joined, (row,), np.asarray(terms, total.dtype)[term])
    return joined.reshape(total.shape).astype(total.dtype)


def prefixes(
    join: np.ufunc, terms: Array, axis: int, length: int, shift: int, nothing: float
) -> Array:
    """Return for each i below `length` the reduction of the terms 0 to i + shift.

    `nothing` is the result where there are no terms.
    """
    return _first(join, terms, axis, np.arange(length) + (shift + 1), nothing)


def suffixes(
    join: np.ufunc, terms: Array, axis: int, length: int, shift: int, nothing: float
) -> Array:
    """Return for each i below `length` the reduction of the terms from i + shift on.

    `nothing` is the result where there are no terms.
    """
    # They are prefixes of the reversed terms.
    counts = terms.shape[axis] - shift - np.arange(length)
    return _first(join, np.flip(terms, axis), axis, counts, nothing)


def places(keys: Array, axis: int, dtype: DTypeLike) -> Array:
    """Return the position that each key has once the keys along the axis are sorted, stably."""
    order = np.argsort(keys, axis, kind="stable")
    found = np.empty(keys.shape, dtype)
    numbers = np.arange(keys.shape[axis], dtype=dtype)
    along = (-1, *(1,) * (keys.ndim - 1 - axis))
    np.put_along_axis(found, order, numbers.reshape(along), axis)
    return found


def _first(
    join: np.ufunc, terms: Array, axis: int, counts: Array, nothing: float
) -> Array:
    """Return the reduction of the first terms, as many as `counts`; floats in double."""
    # Behind the neutral value, the reduction of the first n terms is at n.
    wide = _wide(terms.dtype)
    one = (*terms.shape[:axis], 1, *terms.shape[axis + 1 :])
    start = np.full(one, nothing, wide)
    padded = np.concatenate((start, terms.astype(wide)), axis)
    running = join.accumulate(padded, axis, dtype=wide)
    some = np.clip(counts, 0, terms.shape[axis])
    return np.take(running, some, axis).astype(terms.dtype)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which numbers of a type are joined: float64 for floats."""
    return np.dtype(np.float64) if dtype.kind == "f" else dtype


# Places


def argmax(terms: ArrayLike, axis: int, where: ArrayLike = True) -> Array:
    """Return the first place of the greatest term along an axis; -1 if there is no term.

    Only terms where `where` is true count.  NaN is greater than any number.
    """
    return _first_of(np.maximum, terms, axis, where)


def argmin(terms: ArrayLike, axis: int, where: ArrayLike = True) -> Array:
    """Return the first place of the least term along an axis; -1 if there is no term.

    Only terms where `where` is true count.  NaN is less than any number.
    """
    return _first_of(np.minimum, terms, axis, where)


def _first_of(
    extreme: np.ufunc, terms: ArrayLike, axis: int, where: ArrayLike
) -> Array:
    """Return the first place of an extreme among the terms where `where` is true."""
    values, counts = np.broadcast_arrays(terms, where)
    if not values.shape[axis]:
        return np.full(np.delete(values.shape, axis), -1, np.int32)
    start: Any = math.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max
    if extreme is np.maximum:
        start = -math.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    some = np.where(counts, values, np.asarray(start, values.dtype))
    best = extreme.reduce(some, axis, keepdims=True)
    is_best = counts & ((values == best) | np.isnan(values))
    place = np.where(is_best.any(axis), is_best.argmax(axis), -1)
    return place.astype(np.int32)


def find(
    better: np.ufunc,
    best: Array,
    places: Array,
    place: int,
    terms: ArrayLike,
    where: ArrayLike = True,
) -> None:
    """Update `best` terms and their `places`, both in place, by new `terms` at `place`.

    A place of -1 is that of no term yet; NaN is better than any number.
    """
    values = np.asarray(terms, best.dtype)
    better_now = (places < 0) | better(values, best)
    better_now |= np.isnan(values) & ~np.isnan(best)
    np.copyto(best, values, where=where & better_now)
    np.copyto(places, place, where=where & better_now)


# Integers


def where(condition: ArrayLike, truthy: ArrayLike, falsy: ArrayLike) -> Array:
    """Return `truthy` where the condition holds, and `falsy` elsewhere."""
    return np.where(condition, truthy, falsy)


def idiv(x: ArrayLike, y: ArrayLike) -> Array:
    """Divide integers, rounding toward zero; x / 0 is x."""
    dtype = np.result_type(x, y)
    wide, by = np.asarray(x, np.int64), np.asarray(y, np.int64)
    quotient = np.abs(wide) // np.where(by == 0, 1, np.abs(by))
    signed = np.where((wide < 0) == (by < 0), quotient, -quotient)
    return np.where(by == 0, wide, signed).astype(dtype)


def irem(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the remainder of `idiv`, signed like x; x % 0 is 0."""
    dtype = np.result_type(x, y)
    wide, by = np.asarray(x, np.int64), np.asarray(y, np.int64)
    remainder = np.fmod(wide, np.where(by == 0, 1, by))
    return np.asarray(remainder).astype(dtype)


def floor_div(x: ArrayLike, y: ArrayLike) -> Array:
    """Divide integers, rounding down; x / 0 is x."""
    dtype = np.result_type(x, y)
    wide, by = np.asarray(x, np.int64), np.asarray(y, np.int64)
    quotient = np.floor_divide(wide, np.where(by == 0, 1, by))
    return np.asarray(quotient).astype(dtype)


def mod(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the remainder of `floor_div`, signed like y; x mod 0 is 0."""
    dtype = np.result_type(x, y)
    wide, by = np.asarray(x, np.int64), np.asarray(y, np.int64)
    return np.asarray(np.mod(wide, np.where(by == 0, 1, by))).astype(dtype)


def shift_left(x: ArrayLike, count: ArrayLike) -> Array:
    """Return `x << count`, the count taken modulo 32."""
    value = np.asarray(x)
    return _array(np.left_shift(value, _count(count, value)))


def shift_right(x: ArrayLike, count: ArrayLike) -> Array:
    """Return `x >> count`, the count taken modulo 32; i32 keeps its sign."""
    value = np.asarray(x)
    return _array(np.right_shift(value, _count(count, value)))


def _array(x: ArrayLike) -> Array:
    return np.asarray(x)


def _count(count: ArrayLike, value: Array) -> Array:
    return _array(np.bitwise_and(np.asarray(count), 31)).astype(value.dtype)


# Bits


def _bits(x: ArrayLike) -> Array:
    """Return the 32 bits of each integer, with room to shift them."""
    return np.asarray(x).astype(np.uint32).astype(np.uint64)


def _like(bits: Array, x: ArrayLike) -> Array:
    return _array(bits).astype(np.uint32).astype(np.asarray(x).dtype)


def _bit_length(bits: Array) -> Array:
    """Return the number of bits from the highest set bit down; of 0 it is 0."""
    # Set all bits below the highest one, and count: 0b0100 becomes 0b0111.
    smeared = bits
    for shift in (1, 2, 4, 8, 16):
        smeared = smeared | (smeared >> shift)
    return _array(np.bitwise_count(smeared)).astype(np.int64)


def count_one_bits(x: ArrayLike) -> Array:
    """Return how many bits are set."""
    return _like(np.bitwise_count(_bits(x)), x)


def count_leading_zeros(x: ArrayLike) -> Array:
    """Return how many zeros precede the highest set bit; of 0 it is 32."""
    return _like(32 - _bit_length(_bits(x)), x)


def count_trailing_zeros(x: ArrayLike) -> Array:
    """Return how many zeros follow the lowest set bit; of 0 it is 32."""
    # ~b & (b - 1) has ones where b has its lowest zeros; bit 32 ends those of 0.
    bits = _bits(x) | (1 << 32)
    return _like(np.bitwise_count(~bits & (bits - 1)), x)


def first_leading_bit(x: ArrayLike) -> Array:
    """Return the place of the highest bit that differs from the sign; -1 if none."""
    value = np.asarray(x)
    if value.dtype == np.int32:
        value = np.where(value < 0, ~value, value)
    return _like(_bit_length(_bits(value)) - 1, x)


def first_trailing_bit(x: ArrayLike) -> Array:
    """Return the place of the lowest set bit; -1 if none."""
    zeros = np.asarray(count_trailing_zeros(x)).astype(np.int64)
    return _like(np.where(zeros == 32, -1, zeros), x)


def reverse_bits(x: ArrayLike) -> Array:
    """Return the bits in reverse order."""
    bits = _bits(x)
    reverse = np.zeros_like(bits)
    for place in range(32):
        reverse = reverse | (((bits >> place) & 1) << (31 - place))
    return _like(reverse, x)


def _field(offset: ArrayLike, count: ArrayLike) -> tuple[Array, Array]:
    """Return the offset of a bit field and the mask of its width, both cut to 32 bits.

    They are u64, in which a shift by 32 bits is defined.
    """
    start = np.minimum(np.asarray(offset).astype(np.uint64), 32)
    width = np.minimum(np.asarray(count).astype(np.uint64), 32 - start)
    return start, (np.uint64(1) << width) - np.uint64(1)


def extract_bits(x: ArrayLike, offset: ArrayLike, count: ArrayLike) -> Array:
    """Return `count` bits from `offset` on; i32 extends their sign."""
    start, mask = _field(offset, count)
    field = ((_bits(x) >> start) & mask).astype(np.int64)
    if np.asarray(x).dtype == np.int32:
        # The upper half of the field's 2^count values are negative; of no bits it is 0.
        span = mask.astype(np.int64) + 1
        field = np.where(2 * field >= span, field - span, field)
        field = np.where(span == 1, 0, field)
    return _like(field, x)


def insert_bits(
    x: ArrayLike, bits: ArrayLike, offset: ArrayLike, count: ArrayLike
) -> Array:
    """Return x with `count` bits from `offset` on replaced by the lowest of `bits`."""
    start, mask = _field(offset, count)
    hole = mask << start
    return _like((_bits(x) & ~hole) | ((_bits(bits) << start) & hole), x)


# Floats


def bits(x: ArrayLike) -> Array:
    """Return the bits of the f32 that is nearest to x."""
    with np.errstate(all="ignore"):
        return _array(np.asarray(x, np.float32).view(np.uint32))


def erf(x: ArrayLike) -> Array:
    """Return the error function, computed in double."""
    value = np.asarray(x)
    return np.asarray(_erf(value), dtype=value.dtype)


_erf = np.frompyfunc(math.erf, 1, 1)


def quantize_to_f16(x: ArrayLike) -> Array:
    """Round to the nearest f16."""
    value = np.asarray(x)
    return value.astype(np.float16).astype(value.dtype)


def smoothstep(low: ArrayLike, high: ArrayLike, x: ArrayLike) -> Array:
    """Return the cubic that is 0 up to `low` and 1 from `high` on."""
    start = np.asarray(low)
    part = np.clip((np.asarray(x) - start) / (np.asarray(high) - start), 0.0, 1.0)
    return _array(part * part * (3.0 - 2.0 * part))


def ldexp(x: ArrayLike, exponent: ArrayLike) -> Array:
    """Return x times 2 to the power `exponent`."""
    return _array(np.ldexp(np.asarray(x), np.asarray(exponent, dtype=np.int32)))
