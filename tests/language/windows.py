"""Kernels whose subscripts and lengths are arithmetic, with their meaning in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.language.cases import Array, Case


def _pooled(x: Array) -> Array:
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    whole = x[:, : 2 * rows, : 2 * columns]
    pooled: Array = whole.reshape(len(x), rows, 2, columns, 2).max((2, 4))
    return pooled


def _convolved(x: Array, k: Array) -> Array:
    windows = sliding_window_view(x, k.shape[2:], axis=(1, 2))
    convolved: Array = np.einsum("cijrs,ocrs->oij", windows, k)
    return convolved


def _dilated(x: Array) -> Array:
    padded = np.pad(x, 3)
    dilated: Array = padded[:-6] - 2 * padded[3:-3] + padded[6:]
    return dilated


def _by_places(x: Array) -> tuple[Array, ...]:
    i, j = np.indices(x.shape)
    a = 2 * i - j
    half = int(x.shape[1]) // 2
    low: Array = np.where(np.arange(5) < 2, (a * x).sum(1), 0.5)
    ends: Array = np.full(half, half - 1)
    return x - a**2, ends, low


WINDOWS = (
    Case(
        "pools_maxima",
        "kernel f(x: f32[c, h, w]) -> y: f32[c, h / 2, w / 2] {"
        " y[q, i, j] = max[u < 2, v < 2] x[q, 2 * i + u, 2 * j + v]; }",
        lambda draw, n: (draw.f32(2, n + 1, 7),),
        lambda x: (_pooled(x),),
    ),
    Case(
        "convolves",
        "kernel f(x: f32[c, h, w], k: f32[o, c, r, s])"
        " -> y: f32[o, h - r + 1, w - s + 1] {"
        " y[f, i, j] = sum[q, u, v] x[q, i + u, j + v] * k[f, q, u, v]; }",
        lambda draw, n: (draw.f32(2, n + 2, 8), draw.f32(3, 2, 3, 2)),
        lambda x, k: (_convolved(x, k),),
    ),
    Case(
        "reverses_in_place",
        "kernel f(mut x: f32[m, n]) { x[i, j] = x[m - 1 - i, n - 1 - j]; }",
        lambda draw, n: (draw.f32(3, n),),
        lambda x: (x[::-1, ::-1],),
    ),
    Case(
        "differences",
        "kernel f(x: f32[m, n]) -> y: f32[m, n - 1] {"
        " y[i, j] = x[i, j + 1] - x[i, j]; }",
        lambda draw, n: (draw.f32(5, n),),
        lambda x: (np.diff(x),),
    ),
    Case(
        "pads_in_branches",
        "kernel f(x: f32[n]) -> y: f32[n] { y[i] = (if i >= 3 { x[i - 3] } else { 0.0 })"
        " - 2.0 * x[i] + if i + 3 < n { x[i + 3] } else { 0.0 }; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (_dilated(x),),
    ),
    Case(
        "guards_by_and_and_or",
        "kernel f(x: i32[n]) -> y: i32[n], z: i32[n] {"
        " y[i] = if i + 1 < n and x[i + 1] > x[i] { 1 } else { 0 };"
        " z[i] = select(0, 1, i < 2 or not (x[i - 2] == 0 and x[i] == 0)); }",
        lambda draw, n: (draw.i32(n, low=0, high=1),),
        lambda x: (
            np.append(x[1:] > x[:-1], 0),
            np.append(np.ones(min(len(x), 2)), np.minimum(x[:-2] + x[2:], 1)),
        ),
    ),
    Case(
        "takes_ranges_from_reads",
        "kernel f(x: f32[m, n]) -> y: f32[m, n], s: f32[n / 2], t: f32[m] {"
        " let a[i, j] = f32(i * 2 - j); let b[u, v] = a[u, v] * a[u, v];"
        " let low[i] = i < 2; let w[i] = f32(i);"
        " y[i, j] = x[i, j] - b[i, j]; s[p] = w[p] + w[n / 2 - 1 - p];"
        " t[i] = if low[i] { sum[j] a[i, j] * x[i, j] } else { 0.5 }; }",
        lambda draw, n: (draw.f32(5, n + 1),),
        _by_places,
    ),
    Case(
        "reads_fixed_places",
        "kernel f(x: f32[m, 3], k: u32) -> y: f32[m] {"
        " host last = i32(k) - 1;"
        " y[i] = x[i, 0] + 2.0 * x[m - 1, 1] + x[0, last] - x[i, i32(k) / 2]; }",
        lambda draw, n: (draw.f32(n, 3),),
        lambda x: (x[:, 0] + 2 * x[-1, 1] + x[0, 2] - x[:, 1],),
        scalars={"k": 3},
    ),
    Case(
        "takes_lengths_from_scalars",
        "kernel f(x: f32[n], k: u32) -> y: f32[k * 2 - 1], z: f32[k] {"
        " let t[a < k, b < 3] = x[a] * f32(b);"
        " y[i] = x[i] + sum[a < k] t[a, 2]; z[i] = t[i, 1] + sum[b < 2] t[i, b]; }",
        lambda draw, n: (draw.f32(n + 4),),
        lambda x: (x[:5] + 2 * x[:3].sum(), 2 * x[:3]),
        scalars={"k": 3},
    ),
    Case(
        "sums_what_is_near",
        "kernel f(x: f32[m, n], w: i32) -> y: f32[m, n] {"
        " y[i, j] = sum[p when p > j - w and p <= j] x[i, p]; }",
        lambda draw, n: (draw.f32(40, n + 30),),
        lambda x: (sliding_window_view(np.pad(x, ((0, 0), (6, 0))), 7, 1).sum(-1),),
        scalars={"w": 7},
    ),
    Case(
        "skips_by_strides",
        "kernel f(x: f32[n], w: f32[5]) -> y: f32[(n - 5) / 3 + 1] {"
        " y[i] = sum[r < 5] x[3 * i + r] * w[4 - r]; }",
        lambda draw, n: (draw.f32(n + 4), draw.f32(5)),
        lambda x, w: (sliding_window_view(x, 5)[::3] @ w[::-1],),
    ),
    Case(
        "ranges_over_parts_of_axes",
        "kernel f(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n / 2] {"
        " c[i, j] = sum[p < k / 2] a[i, p] * b[p, j]; }",
        lambda draw, n: (draw.f32(n, 33), draw.f32(33, n)),
        lambda a, b: (a[:, :16] @ b[:16, : b.shape[1] // 2],),
    ),
    Case(
        "rotates_halves",
        "kernel f(x: f32[t, d]) -> y: f32[t, d] {"
        " y[i, j] = if j < d / 2 { x[i, j] - x[i, j + d / 2] }"
        " else { x[i, j] + x[i, j - d / 2] }; }",
        lambda draw, n: (draw.f32(n, 8),),
        lambda x: (np.hstack([x[:, :4] - x[:, 4:], x[:, 4:] + x[:, :4]]),),
    ),
    Case(
        "sums_prefixes",
        "kernel f(x: i32[n]) -> y: i32[n] {"
        " y[i] = sum[j < n] if j <= i { x[j] } else { 0 }; }",
        lambda draw, n: (draw.i32(n),),
        lambda x: (np.cumsum(x, dtype=np.int32),),
    ),
    Case(
        "reads_diagonals",
        "kernel f(x: f32[n, n]) -> y: f32[n], s: f32[] {"
        " y[i] = x[i, i] + x[i, n - 1 - i]; s = sum[i] x[i, i]; }",
        lambda draw, n: (draw.f32(n, n),),
        lambda x: (np.diag(x) + np.diag(x[:, ::-1]), np.trace(x)),
    ),
)
