"""What the standard kernels of keyed reductions compute, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .approx import Array

Numbers = NDArray[np.uint32]


def _members(keys: Numbers, count: int) -> NDArray[np.bool_]:
    """Which terms each key chooses, one row per key."""
    return np.equal.outer(np.arange(count), keys)


def segment_sum(x: Array, segment: Numbers, *, segments: int) -> Array:
    """Sums of the rows of each segment."""
    own = _members(segment, segments)[:, :, None]
    result: Array = np.where(own, x, 0.0).sum(1)
    return result


def segment_mean(x: Array, segment: Numbers, *, segments: int) -> Array:
    """Means of the rows of each segment."""
    count = _members(segment, segments).sum(1)
    total = segment_sum(x, segment, segments=segments)
    mean: Array = total / np.maximum(count, 1)[:, None].astype(np.float64)
    return mean


def segment_max(x: Array, segment: Numbers, *, segments: int) -> Array:
    """The largest of the rows of each segment."""
    own = _members(segment, segments)[:, :, None]
    result: Array = np.where(own, x, -np.inf).max(1, initial=-np.inf)
    return result


def segment_min(x: Array, segment: Numbers, *, segments: int) -> Array:
    """The smallest of the rows of each segment."""
    own = _members(segment, segments)[:, :, None]
    result: Array = np.where(own, x, np.inf).min(1, initial=np.inf)
    return result


def bincount_weighted(x: Numbers, weight: Array, *, bins: int) -> Array:
    """Sums of the weights of each number."""
    result: Array = np.where(_members(x, bins), weight, 0.0).sum(1)
    return result


def confusion_matrix(
    actual: Numbers, predicted: Numbers, *, classes: int
) -> NDArray[np.int64]:
    """How often each pair of classes occurs."""
    pairs = _members(actual, classes)[:, None] & _members(predicted, classes)
    result: NDArray[np.int64] = pairs.sum(-1)
    return result


def index_add(y: Array, ids: Numbers, x: Array) -> Array:
    """Rows, with the sums of others."""
    return y + segment_sum(x, ids, segments=y.shape[0])


def spmm(row: Numbers, column: Numbers, value: Array, x: Array, *, rows: int) -> Array:
    """The products of the entries of each row, added up."""
    last = np.uint32(x.shape[0] - 1)
    terms = value[:, None] * x[np.minimum(column, last)]
    return segment_sum(terms, row, segments=rows)


def spmv(row: Numbers, column: Numbers, value: Array, x: Array, *, rows: int) -> Array:
    """The same with a matrix of one column."""
    result: Array = spmm(row, column, value, x[:, None], rows=rows)[:, 0]
    return result


def spmv_csr(start: Numbers, column: Numbers, value: Array, x: Array) -> Array:
    """The same, of entries whose row is known by where rows begin."""
    entries = np.arange(len(column))
    row = np.less_equal.outer(start, entries).sum(0).astype(np.int64) - 1
    rows: Numbers = row.astype(np.uint32)
    return spmv(rows, column, value, x, rows=len(start) - 1)


KEYED: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "scatter": {
        "segment_sum": segment_sum,
        "segment_mean": segment_mean,
        "segment_max": segment_max,
        "segment_min": segment_min,
        "bincount_weighted": bincount_weighted,
        "confusion_matrix": confusion_matrix,
        "index_add": index_add,
        "spmv": spmv,
        "spmv_csr": spmv_csr,
        "spmm": spmm,
    }
}
"""The oracle of each kernel, by module and name."""
