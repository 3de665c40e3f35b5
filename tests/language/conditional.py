"""Kernels that reduce under conditions, with their meaning in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.language.cases import Array, Arrays, Case, Inputs

LOWEST, HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.uint32).max


def _running(x: Array) -> Arrays:
    """Sums of what comes after, largest up to here, and products of what came before."""
    after = x.sum(1, keepdims=True) - x.cumsum(1)
    before = np.ones_like(x)
    before[:, 1:] = x.cumprod(1)[:, :-1]
    return after, np.maximum.accumulate(x, 1), before


def _summed(dy: Array, ids: Array) -> Array:
    """Rows added up by their keys; those outside of 0 to 4 count nowhere."""
    total = np.zeros((5, dy.shape[1]), np.float32)
    inside = (ids >= 0) & (ids < 5)
    np.add.at(total, ids[inside], dy[inside])
    return total


def _joint(a: Array, b: Array, weight: Array) -> Arrays:
    """How often pairs occur, and the least and greatest of their weights."""
    count = np.zeros((3, 4), np.int32)
    least, most = np.full((3, 4), HIGHEST, np.uint32), np.full((3, 4), LOWEST, np.int32)
    inside = (a < 3) & (b < 4)
    at = a[inside], b[inside]
    np.add.at(count, at, 1)
    np.minimum.at(least, at, weight[inside].astype(np.uint32))
    np.maximum.at(most, at, weight[inside])
    return count, least, most


def _under_prefix(a: Array, b: Array, reduce: Callable[..., Any]) -> Array:
    """Reduce the products of row i and a column that are at most at place i."""
    terms = a[:, :, None] * b
    below = np.tril(np.ones(a.shape, bool))[:, :, None]
    identity = 0 if reduce is np.sum else -np.inf
    reduced: Array = reduce(np.where(below, terms, identity), 1)
    return reduced


def _with_gaps(draw: Inputs, *shape: int) -> Array:
    """Draw numbers, some of which are none."""
    x = draw.f32(*shape)
    x[draw.i32(*shape) > 1] = np.nan
    return x


def _windows(x: Array) -> Arrays:
    """Sums of three neighbours, and the largest that differ from the one between."""
    padded = np.pad(x, 1)
    around = np.pad(x, 1, constant_values=-np.inf)
    apart = np.stack([np.where(s != x, s, -np.inf) for s in (around[:-2], around[2:])])
    return padded[:-2] + padded[1:-1] + padded[2:], apart.max(0)


def _nested(x: Array, k: Array) -> Arrays:
    chosen = np.where(k != 0, x * x.cumsum(1), 0)
    return (chosen.sum(1) - np.where(k == 0, x, 0).sum(1),)


def _within(x: Array, first: Any, last: Any, otherwise: float = 0) -> Array:
    """Leave out what is before the first or past the last place of each row."""
    _, places = np.indices(x.shape)
    low, high = (np.asarray(end, np.int64).reshape(-1, 1) for end in (first, last))
    inside = (places >= low) & (places <= high)
    return np.where(inside, x, np.float32(otherwise))


def _ends(draw: Inputs, count: int, length: int) -> Arrays:
    """Draw numbers in an axis, before it, at its ends and far outside."""
    u = draw.u32(count, high=length + 2)
    far = draw.i32(count, low=0, high=5)
    u[far == 0] = 2**32 - 1
    i = draw.i32(count, low=-2, high=length + 2)
    i[far == 1], i[far == 2] = LOWEST, 2**31 - 1
    return u, i


def _ragged(x: Array, length: Array, first: Array) -> Arrays:
    wide, low = length.astype(np.int64), first.astype(np.int64)
    above = np.where(x > -2, x, -np.inf)
    return (
        _within(above, 0, wide - 1, -np.inf).max(1).astype(np.float32),
        _within(x, low + 1, HIGHEST).sum(1),
        _within(x, low, wide).sum(1),
        _within(x, low, low).sum(1),
    )


def _window_of_row(x: Array, ends: Array) -> Arrays:
    places = [(j, k) for j in range(len(x)) for k in range(3) if k <= j < ends[1]]
    total = np.int32(sum(j + k for j, k in places))
    a = _within(x[None], ends[0], int(ends[1]) - 1).sum()
    b = _within(x[None], int(ends[2]) + 1, ends[3], -np.inf).max()
    return np.asarray(a, np.float32), np.asarray(b, np.float32), np.asarray(total)


CONDITIONAL = (
    Case(
        "reduces_prefixes_and_suffixes",
        "kernel f(x: f32[m, n]) -> after: f32[m, n], most: f32[m, n], before: f32[m, n] {"
        " after[i, j] = sum[p when p > j] x[i, p];"
        " most[i, j] = max[p when p <= j] x[i, p];"
        " before[i, j] = prod[p when not (p >= j)] x[i, p]; }",
        lambda draw, n: (np.where(draw.f32(3, n) < 0, -1, 1).astype(np.float32),),
        _running,
    ),
    Case(
        "adds_up_by_key",
        "kernel f(dy: f32[n, d], ids: i32[n]) -> total: f32[5, d] {"
        " total[q, j] = sum[i when ids[i] == q] dy[i, j]; }",
        lambda draw, n: (draw.f32(n, 7), draw.i32(n, low=-1, high=6)),
        lambda dy, ids: (_summed(dy, ids),),
    ),
    Case(
        "counts_pairs",
        "kernel f(a: u32[n], b: u32[n], weight: i32[n])"
        " -> count: i32[3, 4], least: u32[3, 4], most: i32[3, 4] {"
        " count[p, q] = sum[i when a[i] == u32(p) and b[i] == u32(q)] 1;"
        " least[p, q] = min[i when a[i] == u32(p) and b[i] == u32(q)] u32(weight[i]);"
        " most[p, q] = max[i when a[i] == u32(p) and b[i] == u32(q)] weight[i]; }",
        lambda draw, n: (draw.u32(n), draw.u32(n, high=4), draw.i32(n, low=0)),
        _joint,
    ),
    Case(
        "leaves_out_what_is_no_number",
        "kernel f(x: f32[m, n]) -> total: f32[m], most: f32[m] {"
        " total[i] = sum[j when not is_nan(x[i, j])] x[i, j];"
        " let known[i, j] = x[i, j] == x[i, j];"
        " most[i] = max[j when known[i, j]] x[i, j]; }",
        lambda draw, n: (_with_gaps(draw, 5, n),),
        lambda x: (
            np.nansum(x, 1),
            np.where(np.isnan(x), -np.inf, x).max(1),
        ),
    ),
    Case(
        "reduces_inside_of_borders",
        "kernel f(x: f32[n]) -> y: f32[n], z: f32[n] {"
        " y[i] = sum[u < 3 when i + u >= 1 and i + u <= n] x[i + u - 1];"
        " z[i] = max[u < 3 when i + u >= 1 and i + u <= n and x[i + u - 1] != x[i]]"
        " x[i + u - 1]; }",
        lambda draw, n: (draw.f32(n),),
        _windows,
    ),
    Case(
        "multiplies_triangles",
        "kernel f(a: f32[n, n], b: f32[n, d]) -> y: f32[n, d], z: f32[n, d] {"
        " y[i, j] = sum[p when p <= i] a[i, p] * b[p, j];"
        " z[i, j] = max[p when p <= i] a[i, p] * b[p, j]; }",
        lambda draw, n: (draw.f32(n, n), draw.f32(n, 5)),
        lambda a, b: (_under_prefix(a, b, np.sum), _under_prefix(a, b, np.max)),
    ),
    Case(
        "reduces_under_conditions_in_one_another",
        "kernel f(x: f32[m, n], k: u32[n]) -> y: f32[m] {"
        " y[i] = (sum[j when k[j] != 0] x[i, j] * (sum[p when p <= j] x[i, p]))"
        " - (sum[j when k[j] == 0] x[i, j]); }",
        lambda draw, n: (draw.f32(4, n), draw.u32(n, high=1)),
        _nested,
    ),
    Case(
        "reduces_ragged_rows",
        "kernel f(x: f32[n, k], len: u32[n], from_: i32[n]) -> a: f32[n], b: f32[n],"
        " c: f32[n], d: f32[n] {"
        " a[i] = max[j when u32(j) < len[i] and x[i, j] > -2.0] x[i, j];"
        " b[i] = sum[j when j > from_[i]] x[i, j];"
        " c[i] = sum[j when from_[i] <= j and len[i] >= u32(j)] x[i, j];"
        " d[i] = sum[j when j == from_[i]] x[i, j]; }",
        lambda draw, n: (draw.f32(n, 70), *_ends(draw, n, 70)),
        _ragged,
    ),
    Case(
        "reduces_ragged_columns",
        "kernel f(x: f32[k, n], top: f32[n], len: u32[1], from_: i32[1]) -> a: f32[n],"
        " b: f32[n], c: f32[n], d: f32[n] {"
        " a[i] = sum[j when u32(j) < len[0]] x[j, i];"
        " b[i] = max[j when j > from_[0]] x[j, i];"
        " c[i] = sum[j when j >= from_[0] and u32(j) <= len[0]] x[j, i] * top[i];"
        " d[i] = sum[j when len[0] > 3 and x[j, i] > 0.0] x[j, i]; }",
        lambda draw, n: (draw.f32(70, n), draw.f32(n), *_ends(draw, 1, 70)),
        lambda x, top, length, first: (
            _within(x.T, 0, length[0] - np.int64(1)).sum(1),
            _within(x.T, first[0] + np.int64(1), HIGHEST, -np.inf).max(1),
            _within(x.T, first[0], length[0]).sum(1) * top,
            np.maximum(x, 0).sum(0) * (length[0] > 3),
        ),
    ),
    Case(
        "reduces_a_window_of_a_row",
        "kernel f(x: f32[n], ends: i32[4]) -> a: f32[], b: f32[], c: i32[] {"
        " a = sum[j when j >= ends[0] and j < ends[1]] x[j];"
        " b = max[j when ends[2] < j and ends[3] >= j] x[j];"
        " c = sum[j < n, k < 3 when k <= j and j < ends[1]] (k + j); }",
        lambda draw, n: (draw.f32(n), draw.i32(4, low=-2, high=n + 2)),
        _window_of_row,
    ),
)
