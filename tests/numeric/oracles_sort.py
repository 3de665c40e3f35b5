"""The steps of sorting, compaction and top-k, by hand in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .approx import Array, exactly, known

Words: TypeAlias = NDArray[np.uint32]
Places: TypeAlias = NDArray[np.int64]

AT_ONCE = 6


def in_order(x: Any) -> Any:
    """NumPy's; of numbers with errors, their places are exact."""
    return x[argsort(x)]


def argsort(x: Any) -> Places:
    """The first of equals first; both zeros are equal, and NaN is last."""
    values = exactly(x) if hasattr(x, "value") else x
    return np.argsort(values, kind="stable")


def order_by_rows(order: Words, *, length: int) -> Words:
    """By how many whole rows come before."""
    return order[argsort(np.floor_divide(order, np.uint32(length)))]


def places_in_rows(order: Words, *, length: int) -> Words:
    """What is left of the rows before."""
    return np.remainder(order, np.uint32(length))


def take(x: Any, order: Words) -> Any:
    """The last one for a place past the end."""
    return x[np.minimum(order, np.uint32(x.shape[0] - 1))]


def nonzero(x: Words) -> tuple[Places, Places]:
    """NumPy's, filled up."""
    (found,) = np.nonzero(x)
    filled = np.pad(found, (0, len(x) - len(found)), constant_values=2**32 - 1)
    return filled, np.array(len(found))


def begins(x: Any) -> NDArray[np.bool_]:
    """Where a difference is not 0."""
    values = exactly(x) if hasattr(x, "value") else np.asarray(x, np.int64)
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def is_nonzero(x: Any) -> NDArray[np.bool_]:
    """One bit of each."""
    flags: NDArray[np.bool_] = np.asarray(exactly(x)) != 0
    return flags


def run_lengths(starts: Words) -> Places:
    """Up to the next one, or to the end; those past the end are none."""
    n = len(starts)
    ends = np.append(starts[1:].astype(np.int64), n)
    lengths = np.minimum(ends, n) - starts.astype(np.int64)
    return np.where(starts < n, lengths, 0) % 2**32


def find_more(x: Array, found: Places, *, count: int = 0) -> Places:
    """One after the other, each the first of the greatest behind the last."""
    values, y = exactly(x), np.array(found)
    k = y.shape[1]
    for row, own in zip(values, y, strict=True):
        begin = own[min(count, k) - 1] if count else -1
        last, everything = begin, begin < 0
        for place in range(count, count + AT_ONCE):
            bound = row[np.clip(last, 0, len(row) - 1)]
            later = (row < bound) | ((row == bound) & (np.arange(len(row)) > last))
            some = np.flatnonzero(later | everything)
            last = some[row[some].argmax()] if len(some) else -1
            everything = False
            if place < k:
                own[place] = last
    return y


def greatest_of_chunks(x: Array) -> Array:
    """Along the last axis."""
    greatest: Array = known(exactly(x).max(-1, initial=-np.inf), x)
    return greatest


def greatest_of_uneven_chunks(x: Array, *, size: int) -> Array:
    """Of rows filled up with -inf."""
    values = exactly(x)
    padded = np.pad(
        values, ((0, 0), (0, -values.shape[1] % size)), constant_values=-np.inf
    )
    chunks = padded.reshape(len(values), padded.shape[1] // size, size)
    greatest: Array = known(chunks.max(-1, initial=-np.inf), x)
    return greatest


def take_chunks(x: Array, chunks: Places, *, size: int) -> tuple[Array, Places]:
    """Chunks in order; past the end -inf."""
    values, n = exactly(x), x.shape[1]
    rank = (chunks[:, None] < chunks[:, :, None]).sum(2)
    ordered = np.zeros_like(chunks)
    for row, (to, which) in enumerate(zip(rank, chunks, strict=True)):
        np.add.at(ordered[row], to, which)
    at = ordered[:, :, None] * size + np.arange(size)
    rows = np.arange(len(values))[:, None, None]
    taken = np.where(at < n, values[rows, np.clip(at, 0, n - 1)], -np.inf)
    return known(taken, x), ordered


def places_in_row(found: Places, chunks: Places, *, size: int) -> Places:
    """A chunk's start, and the place there."""
    which = np.clip(found // size, 0, chunks.shape[1] - 1)
    return np.take_along_axis(chunks, which, 1) * size + found % size


def take_places(x: Array, at: Places) -> tuple[Array, Words]:
    """Elements of each row."""
    rows = np.arange(len(at))[:, None]
    return x[rows, np.clip(at, 0, x.shape[1] - 1)], at.astype(np.uint32)


SORT: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "sort": {
        "sort_u32": in_order,
        "sort_i32": in_order,
        "sort_f32": in_order,
        "argsort_u32": argsort,
        "argsort_i32": argsort,
        "argsort_f32": argsort,
        "order_by_rows": order_by_rows,
        "places_in_rows": places_in_rows,
        "take_f32": take,
        "take_i32": take,
        "take_u32": take,
        "nonzero": nonzero,
        "is_nonzero_i32": is_nonzero,
        "is_nonzero_f32": is_nonzero,
        "begins_u32": begins,
        "begins_i32": begins,
        "begins_f32": begins,
        "run_lengths": run_lengths,
    },
    "topk": {
        "find_more": find_more,
        "greatest_of_chunks": greatest_of_chunks,
        "greatest_of_uneven_chunks": greatest_of_uneven_chunks,
        "take_chunks": take_chunks,
        "places_in_row": places_in_row,
        "take_places": take_places,
    },
}
