"""Sorting, by radix sort: four bits of all keys at a time, the lowest first.

It is stable: of equal keys, the first comes first.  i32 and f32 are sorted as the u32
that order as they do.  NaN comes last, and both zeros are equal, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kerngen.runtime import ShapeError, f32, i32, u32
from kerngen.sort.vectors import AnyTensor, check_rows, check_vector
from kerngen_kernels import sort as kernels

DIGIT: Final = 4
"""How many bits of a key are sorted by at a time."""

_BLOCKS: Final[Mapping[type, Callable[[Any], AnyTensor]]] = {
    f32: kernels.blocks_of_f32,
    i32: kernels.blocks_of_i32,
    u32: kernels.blocks_of_u32,
}
_TAKE: Final[Mapping[type, Callable[[Any, Any], AnyTensor]]] = {
    f32: kernels.take_f32,
    i32: kernels.take_i32,
    u32: kernels.take_u32,
}


class Sorted(NamedTuple):
    """Keys in ascending order, and the values that belong to them."""

    keys: AnyTensor
    values: AnyTensor


def sort(x: AnyTensor) -> AnyTensor:
    """Return the elements in ascending order along the last axis; NaN comes last.

    Raises:
        ArgumentError: If x is no tensor of f32, i32 or u32.
        ShapeError: If x has no axis.
    """
    x = check_rows("sort", "x", x)
    if x.ndim > 1 or x.element is f32:  # both zeros are one key
        return take(x.reshape(x.size), _order(x)).reshape(x.shape)
    keys = _sorted_keys(x)
    return kernels.i32_of_keys(keys) if x.element is i32 else keys


def argsort(x: AnyTensor) -> AnyTensor:
    """Return the places of the elements in ascending order along the last axis, of u32.

    Of a vector, `take(x, argsort(x))` is `sort(x)`.  Of equal elements the first comes
    first.

    Raises:
        ArgumentError: If x is no tensor of f32, i32 or u32.
        ShapeError: If x has no axis.
    """
    x = check_rows("argsort", "x", x)
    order = _order(x)
    if x.ndim == 1:
        return order
    return kernels.places_in_rows(order, length=x.shape[-1]).reshape(x.shape)


def sort_by_key(keys: AnyTensor, values: AnyTensor) -> Sorted:
    """Return keys in ascending order, and in the same order the values beside them.

    Values of equal keys stay in their order.

    Args:
        keys: [n].
        values: [n].

    Raises:
        ArgumentError: If either is no tensor of f32, i32 or u32.
        ShapeError: If either is no vector, or their lengths differ.
    """
    keys = check_vector("sort_by_key", "keys", keys)
    values = check_vector("sort_by_key", "values", values)
    if keys.size != values.size:
        raise ShapeError(
            f"sort_by_key: there are {keys.size} keys and {values.size} values; expected "
            "as many of both."
        )
    order = _order(keys)
    return Sorted(take(keys, order), take(values, order))


def take(x: AnyTensor, places: AnyTensor) -> AnyTensor:
    """Return the elements of a vector at some places, of u32; past the end the last one."""
    return _TAKE[x.element](x, places)


def _sorted_keys(x: AnyTensor) -> AnyTensor:
    """Return the keys of a vector, sorted."""
    key = _BLOCKS[x.element](x)
    for shift in range(0, 32, DIGIT):
        rank, starts = _places(key, shift)
        key = kernels.move_by_digit(key, key, rank, starts, shift=shift)
        key = key.reshape(rank.shape)
    return key.reshape(key.size)[: x.size]


def _order(x: AnyTensor) -> AnyTensor:
    """Return the places of all elements, in the order of their keys in each row.

    They are sorted by their keys, then by their rows, which keeps them in that order.
    """
    if not x.size:
        return kernels.numbers(n=0, ctx=x.ctx)
    key = _BLOCKS[x.element](x.reshape(x.size))
    order = kernels.numbers(n=key.size, ctx=x.ctx).reshape(key.shape)
    order = _moved(order, key, 32)
    if x.ndim > 1:
        length = x.shape[-1]
        last = (order.size - 1) // length
        key = kernels.rows_of(order, length=length)
        order = _moved(order, key, last.bit_length())
    return order.reshape(order.size)[: x.size]


def _moved(x: AnyTensor, key: AnyTensor, width: int) -> AnyTensor:
    """Return elements, in blocks, in the order of keys of so many bits."""
    for shift in range(0, width, DIGIT):
        rank, starts = _places(key, shift)
        x = kernels.move_by_digit(x, key, rank, starts, shift=shift)
        x = x.reshape(rank.shape)
        if shift + DIGIT < width:
            key = kernels.move_by_digit(key, key, rank, starts, shift=shift)
            key = key.reshape(rank.shape)
    return x


def _places(key: AnyTensor, shift: int) -> tuple[AnyTensor, AnyTensor]:
    """Return each key's place among its digit in its block, and where those begin."""
    rank, counts = kernels.count_digits(key, shift=shift)
    starts = kernels.sums_before(counts.reshape(counts.size))
    return rank, starts.reshape(counts.shape)
