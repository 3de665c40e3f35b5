"""The k greatest elements of each row, of any k: best up to 64.

A row is cut into chunks.  The k greatest elements are in the k chunks whose own greatest
elements are greatest, so that after one pass over the row only these are looked at:

    x:       3 1 4 | 1 5 9 | 2 6 5 | 3 5 8        k = 2, chunks of 3
    greatest of each chunk: 4, 9, 6, 8            chunks 1 and 3 are taken
    1 5 9 3 5 8                                   the two greatest are at 2 and 5

The k greatest of the chunks are found in the same way, and at last those of a short row
by repeated `argmax`.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, Final, NamedTuple, TypeAlias

from kerngen.runtime import ArgumentError, Matrix, ShapeError, Tensor, f32, i32
from kerngen.runtime.tensor import is_tensor
from kerngen.runtime.values.kinds import kind_of
from kerngen_kernels import topk as kernels

Places: TypeAlias = Tensor[Any, Any]

AT_ONCE: Final = 6
"""The number of places that a call of `find_more` finds."""

SHORT: Final = 256
"""Rows of this many elements are not cut: finding six places there takes one short pass."""

LEAST_CHUNK: Final = 16
"""The fewest elements of a chunk."""


class TopK(NamedTuple):
    """The greatest elements of each row, the greatest first, and their places."""

    values: Tensor[Any, Any]
    places: Tensor[Any, Any]


def topk(x: Tensor[Any, Any], k: int) -> TopK:
    """Return the k greatest elements along the last axis, the greatest first.

    NaN is above all numbers, as in PyTorch.  Of equal elements the first are taken, in
    their order.

    Args:
        x: [..., n], of f32.
        k: From 1 to n.

    Returns:
        Values and places, both [..., k].

    Raises:
        ArgumentError: If x is no tensor of f32, or k no number from 1 to n.
        ShapeError: If x has no axis.
    """
    _check_floats(x)
    if not x.shape:
        raise ShapeError("topk: x is a scalar; expected an axis at least.")
    *outer, n = x.shape
    _check_number(k, n)
    shape = (*outer, k)
    rows = x.reshape((x.size // n, n))
    places = _places(rows, k)
    taken = kernels.take_places(rows, places)
    return TopK(taken.y.reshape(shape), taken.places.reshape(shape))


def _check_floats(x: object) -> None:
    """Raise ArgumentError unless x is a tensor of f32."""
    if not is_tensor(x):
        raise ArgumentError(f"topk: x is {kind_of(x)}; expected a tensor of f32.")
    if x.element is not f32:
        raise ArgumentError(
            f"topk: x is a tensor of {x.element.__name__}; expected a tensor of f32."
        )


def _check_number(k: object, n: int) -> None:
    """Refuse a k that is no whole number from 1 to n."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= n:
        raise ArgumentError(
            f"topk: k is {k!r}; expected a whole number from 1 to {n}, the length of the "
            "last axis."
        )


def _places(x: Matrix[f32], k: int) -> Matrix[i32]:
    """Return the places of the k greatest elements of each row."""
    # The best chunks are found by this very function, in the row of their greatest
    # elements; `taken` has the elements of those chunks side by side.
    n = x.shape[1]
    size = _chunk(n, k)
    if n <= SHORT or n // size <= k:
        return _in_short_rows(x, k)
    chunks = _places(_greatest(x, size), k)
    taken = kernels.take_chunks(x, chunks, size=size)
    found = _in_short_rows(taken.y.reshape((x.shape[0], k * size)), k)
    return kernels.places_in_row(found, taken.ordered, size=size)


def _chunk(n: int, k: int) -> int:
    """Return the length of chunks: the power of two from sqrt(n / k) on.

    With chunks of c elements, n / c greatest elements and the k c elements of the chosen
    chunks are left to look at: fewest for c = sqrt(n / k).
    """
    power = (max(isqrt(n // k), LEAST_CHUNK) - 1).bit_length()
    return 1 << power


def _greatest(x: Matrix[f32], size: int) -> Matrix[f32]:
    m, n = x.shape
    if n % size:
        return kernels.greatest_of_uneven_chunks(x, size=size)
    return kernels.greatest_of_chunks(x.reshape((m, n // size, size)))


def _in_short_rows(x: Matrix[f32], k: int) -> Matrix[i32]:
    found = x.ctx.empty((x.shape[0], k), i32)
    for count in range(0, k, AT_ONCE):
        kernels.find_more(x, found, count=count)
    return found
