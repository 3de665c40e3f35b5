"""Kernels that find places of greatest and least numbers, with their meaning in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.language.cases import Array, Arrays, Case

Find = Callable[..., Any]


def first_where(find: Find, x: Array, counts: Array) -> Array:
    """Return for each row what `find` finds among the terms that count; -1 of none."""
    found = np.full(len(x), -1, np.int32)
    counts = np.broadcast_to(counts, x.shape)
    for i, (row, own) in enumerate(zip(x, counts, strict=True)):
        places = np.flatnonzero(own)
        if len(places):
            found[i] = places[find(row[places])]
    return found


def _of_all(find: Find, x: Array, axis: int | None = None) -> Array:
    return np.asarray(find(x, axis), np.int32)


def _parted(x: Array, k: Array) -> Arrays:
    """Search the positive ones, and those before the middle with another key."""
    number = np.arange(len(k))
    before = number < len(k) // 2
    return (
        first_where(np.argmin, x, x > 0),
        first_where(np.argmax, x, before & (k != 1)),
    )


def _beside(x: Array) -> Arrays:
    top = x.max(1, keepdims=True)
    return x - top, _of_all(np.argmax, x, 1), x.sum(1)


def _nearest(a: Array, b: Array) -> Arrays:
    apart = ((a[:, None] - b) ** 2).sum(-1)
    return (_of_all(np.argmin, apart, 1),)


def _nested(x: Array, w: Array) -> Arrays:
    """Find for each element where a product is greatest, and read there."""
    place = _of_all(np.argmax, x[:, :, None] * w, 2)
    best = _of_all(np.argmax, x, 1)
    return w[place] + x[np.arange(len(x)), best][:, None], place


def _of_parts(x: Array, k: Array) -> Arrays:
    number = np.arange(len(k))
    before = number <= number[:, None]
    by_key = [first_where(np.argmin, x, k == key) for key in range(4)]
    up_to = [first_where(np.argmax, x, row) for row in before]
    return np.stack(up_to, 1), np.stack(by_key, 1)


PLACES = (
    Case(
        "finds_places_in_rows",
        "kernel f(x: f32[m, n]) -> y: i32[m], z: i32[m] {"
        " y[i] = argmax[j] x[i, j]; z[i] = argmin[j] x[i, j] * 2.0; }",
        lambda draw, n: (draw.f32(5, n),),
        lambda x: (_of_all(np.argmax, x, 1), _of_all(np.argmin, x, 1)),
    ),
    Case(
        "finds_places_in_columns",
        "kernel f(x: i32[m, n]) -> y: i32[n], z: i32[n] {"
        " y[j] = argmax[i] x[i, j]; z[j] = argmin[i] x[i, j]; }",
        lambda draw, n: (draw.i32(n, 9),),
        lambda x: (_of_all(np.argmax, x, 0), _of_all(np.argmin, x, 0)),
    ),
    Case(
        "finds_the_place_in_a_vector",
        "kernel f(x: u32[n]) -> y: i32[], z: i32[] {"
        " y = argmax[i] x[i]; z = argmin[i] x[i]; }",
        lambda draw, n: (draw.u32(n, high=2),),
        lambda x: (_of_all(np.argmax, x), _of_all(np.argmin, x)),
    ),
    Case(
        "finds_places_under_conditions",
        "kernel f(x: f32[m, n], k: i32[n]) -> y: i32[m], z: i32[m] {"
        " y[i] = argmin[j when x[i, j] > 0.0] x[i, j];"
        " z[i] = argmax[j when j < n / 2 and k[j] != 1] x[i, j]; }",
        lambda draw, n: (draw.f32(5, n), draw.i32(n)),
        _parted,
    ),
    Case(
        "finds_places_beside_other_reductions",
        "kernel f(x: f32[m, n]) -> y: f32[m, n], at: i32[m], all: f32[m] {"
        " let top[i] = max[j] x[i, j];"
        " y[i, j] = x[i, j] - top[i];"
        " at[i] = argmax[j] y[i, j];"
        " all[i] = sum[j] x[i, j]; }",
        lambda draw, n: (draw.f32(4, n),),
        _beside,
    ),
    Case(
        "finds_the_nearest_row",
        "kernel f(a: f32[m, d], b: f32[n, d]) -> y: i32[m] {"
        " y[i] = argmin[j] sum[p] (a[i, p] - b[j, p]) * (a[i, p] - b[j, p]); }",
        lambda draw, n: (draw.f32(5, 2), draw.f32(n, 2)),
        _nearest,
    ),
    Case(
        "finds_places_within_other_values",
        "kernel f(x: f32[m, n], w: f32[k]) -> y: f32[m, n], z: i32[m, n] {"
        " z[i, j] = argmax[p] x[i, j] * w[p];"
        " y[i, j] = w[argmax[p] x[i, j] * w[p]] + x[i, argmax[q] x[i, q]]; }",
        lambda draw, n: (draw.f32(3, n), draw.f32(4)),
        _nested,
    ),
    Case(
        "counts_the_elements_whose_best_is_elsewhere",
        "kernel f(x: f32[m, n], w: f32[k]) -> y: i32[m] {"
        " y[i] = sum[j] argmin[p when w[p] != x[i, j]] x[i, j] * w[p]; }",
        lambda draw, n: (draw.f32(3, n), draw.f32(4)),
        lambda x, w: (
            np.array(
                [
                    first_where(
                        np.argmin, row[:, None] * w, w[None] != row[:, None]
                    ).sum()
                    for row in x
                ],
                np.int32,
            ),
        ),
    ),
    Case(
        "finds_places_of_prefixes_and_keys",
        "kernel f(x: f32[m, n], k: u32[n]) -> y: i32[m, n], z: i32[m, 4] {"
        " y[i, j] = argmax[p when p <= j] x[i, p];"
        " z[i, q] = argmin[p when k[p] == u32(q)] x[i, p]; }",
        lambda draw, n: (draw.f32(3, n), draw.u32(n, high=5)),
        _of_parts,
    ),
)
