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
)
