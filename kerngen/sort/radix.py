"""Sorting, by a radix sort on the device.

It is stable: of equal keys, the first comes first.  NaN comes last, and both zeros are
equal, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kerngen.runtime import ShapeError, f32, i32, u32
from kerngen.sort.vectors import AnyTensor, check_rows, check_vector
from kerngen_kernels import sort as kernels

_SORT: Final[Mapping[type, Callable[[Any], AnyTensor]]] = {
    f32: kernels.sort_f32,
    i32: kernels.sort_i32,
    u32: kernels.sort_u32,
}
_ARGSORT: Final[Mapping[type, Callable[[Any], AnyTensor]]] = {
    f32: kernels.argsort_f32,
    i32: kernels.argsort_i32,
    u32: kernels.argsort_u32,
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
    if x.ndim > 1:
        return take(x.reshape(x.size), _order(x)).reshape(x.shape)
    return _SORT[x.element](x)


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
    """Return keys in ascending order, with the values in the order of their keys.

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


def _order(x: AnyTensor) -> AnyTensor:
    """Return the places of all elements, row by row, in each row by ascending key.

    All elements are sorted by key first, then by row: a stable sort keeps the order of
    keys within a row.

        rows 5 2 | 4 9    by key: places 1 2 0 3    by row: 1 0 2 3
    """
    order = _ARGSORT[x.element](x.reshape(x.size))
    if x.ndim == 1:
        return order
    return kernels.order_by_rows(order, length=x.shape[-1])
