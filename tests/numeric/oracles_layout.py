"""What the standard kernels that rearrange, look up and add along compute, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .approx import Array, exactly, known

Numbers: TypeAlias = NDArray[np.uint32]


def transpose(x: Array) -> Array:
    """The last two axes, swapped."""
    return np.swapaxes(x, -1, -2)


def swap_heads(x: Array) -> Array:
    """The middle axes, swapped."""
    return np.swapaxes(x, 1, 2)


def split_heads(x: Array, *, heads: int) -> Array:
    """The features as heads and features, the heads in front."""
    batch, length, features = x.shape
    split = np.reshape(x, (batch, length, heads, features // heads))
    return np.moveaxis(split, 2, 1)


def merge_heads(x: Array) -> Array:
    """The heads behind the positions, then one with the features."""
    batch, heads, length, features = x.shape
    return np.reshape(np.moveaxis(x, 1, 2), (batch, length, heads * features))


def slice_rows(x: Array, *, start: int, count: int) -> Array:
    """A slice of rows."""
    return x[start : start + count]


def slice_columns(x: Array, *, start: int, count: int) -> Array:
    """A slice of columns."""
    return x[:, start : start + count]


def flip_rows(x: Array) -> Array:
    """Upside down."""
    return np.flip(x, 0)


def flip_columns(x: Array) -> Array:
    """The other way round."""
    return np.flip(x, 1)


def roll_rows(x: Array, *, shift: int) -> Array:
    """Down, and in again above."""
    return np.roll(x, shift, 0)


def roll_columns(x: Array, *, shift: int) -> Array:
    """Right, and in again at the left."""
    return np.roll(x, shift, 1)


def pad(mode: Any) -> Callable[..., Array]:
    """Padding that repeats or mirrors elements."""

    def oracle(x: Array, *, top: int, bottom: int, left: int, right: int) -> Array:
        return np.pad(x, ((top, bottom), (left, right)), mode=mode)

    return oracle


def pad_constant(
    x: Array, *, top: int, bottom: int, left: int, right: int, value: float
) -> Array:
    """Padding with a number."""
    around = ((top, bottom), (left, right))
    real = np.pad(np.ones(x.shape, np.bool_), around)
    return np.where(real, np.pad(x, around), value)


def join_rows(a: Array, b: Array) -> Array:
    """One below the other."""
    return np.concatenate([a, b], 0)


def join_columns(a: Array, b: Array) -> Array:
    """One beside the other."""
    return np.concatenate([a, b], 1)


def repeat_rows(x: Array, *, times: int) -> Array:
    """Every row, repeated."""
    return np.repeat(x, times, 0)


def tile(x: Array, *, down: int, across: int) -> Array:
    """The matrix, repeated."""
    return np.tile(x, (down, across))


def embedding(table: Array, ids: Numbers) -> Array:
    """Rows by number; the last for a number past the end."""
    return table[np.minimum(ids, np.uint32(table.shape[0] - 1))]


def embedding_gradient(ids: Numbers, dy: Array, *, v_len: int) -> Array:
    """For each row of the table, the sum over where it was read."""
    read = np.equal.outer(np.arange(v_len), np.minimum(ids, v_len - 1))
    result: Array = np.where(read[:, :, None], dy, 0.0).sum(1)
    return result


def one_hot(ids: Numbers, *, columns: int) -> Array:
    """1 where the number of the column is meant."""
    return np.equal.outer(ids, np.arange(columns)).astype(np.float64)


def pick(x: Array, ids: Numbers) -> Array:
    """An element of each row; the last for a number past the end."""
    last = np.uint32(x.shape[1] - 1)
    return x[np.arange(x.shape[0]), np.minimum(ids, last)]


def argmax(x: Array) -> NDArray[np.int64]:
    """The first largest; the highest u32 in an empty row."""
    if not x.shape[1]:
        rows: int = x.shape[0]
        return np.full(rows, 2**32 - 1, np.int64)
    places: NDArray[np.int64] = np.argmax(exactly(x), axis=1)
    return places


def argmin(x: Array) -> NDArray[np.int64]:
    """The first smallest; the highest u32 in an empty row."""
    return argmax(-x)


def where(condition: Numbers, a: Array, b: Array) -> Array:
    """One or the other."""
    return np.where(condition != 0, a, b)


def cumsum_rows(x: Array) -> Array:
    """The sums of all prefixes."""
    summed: Array = x.cumsum(-1)
    return summed


def cumsum_columns(x: Array) -> Array:
    """The same along the first axis."""
    summed: Array = x.cumsum(0)
    return summed


def cumsum_before(x: Array) -> Array:
    """What comes before each element, which is nothing of the first."""
    before: Array = cumsum_rows(np.pad(x, (1, 0)))[:-1]
    return before


def cumsum_from(x: Array) -> Array:
    """From the other end."""
    return np.flip(cumsum_rows(np.flip(x)))


def cumsum_u32(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Modulo 2^32."""
    return np.cumsum(x, dtype=np.uint32)


def along_rows(function: np.ufunc) -> Callable[[Array], Array]:
    """What a function accumulates along each row, of terms that make it exact."""

    def accumulate(x: Array) -> Array:
        running: Array = known(function.accumulate(exactly(x), -1), x)
        return running

    return accumulate


def segment_starts(keys: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The last place up to each where a key differs from the one before."""
    places = np.arange(len(keys))
    begins = np.diff(keys.astype(np.int64), prepend=-1) != 0
    return np.maximum.accumulate(np.where(begins, places, 0))


def cumsum_segments_u32(
    x: NDArray[np.uint32], keys: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Each segment by itself."""
    starts = np.flatnonzero(np.diff(keys.astype(np.int64), prepend=-1))
    parts = [cumsum_u32(part) for part in np.split(x, starts)]
    return np.concatenate(parts)


LAYOUT: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "layout": {
        "transpose": transpose,
        "batch_transpose": transpose,
        "swap_heads": swap_heads,
        "swap_heads_gradient": swap_heads,
        "split_heads": split_heads,
        "merge_heads": merge_heads,
        "slice_rows": slice_rows,
        "slice_columns": slice_columns,
        "flip_rows": flip_rows,
        "flip_columns": flip_columns,
        "roll_rows": roll_rows,
        "roll_columns": roll_columns,
        "pad_constant": pad_constant,
        "pad_edge": pad("edge"),
        "pad_reflect": pad("reflect"),
        "join_rows": join_rows,
        "join_columns": join_columns,
        "repeat_rows": repeat_rows,
        "tile": tile,
    },
    "indexing": {
        "embedding": embedding,
        "embedding_gradient": embedding_gradient,
        "one_hot": one_hot,
        "pick": pick,
        "argmax": argmax,
        "argmin": argmin,
        "where": where,
    },
    "scan": {
        "cumsum": cumsum_rows,
        "cumsum_rows": cumsum_rows,
        "cumsum_columns": cumsum_columns,
        "cumsum_before": cumsum_before,
        "cumsum_from": cumsum_from,
        "cumsum_u32": cumsum_u32,
        "cumprod_rows": along_rows(np.multiply),
        "cummax_rows": along_rows(np.maximum),
        "cummin_rows": along_rows(np.minimum),
        "segment_starts": segment_starts,
        "cumsum_segments_u32": cumsum_segments_u32,
    },
}
"""The oracle of each kernel, by module and name."""
