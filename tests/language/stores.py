"""Kernels that store at a position, with their meaning in NumPy."""

from __future__ import annotations

import numpy as np

from tests.language.cases import Array, Arrays, Case


def _put(x: Array, value: Array, *places: Array | int) -> Array:
    """Store element by element, and drop what is outside."""
    result = x.copy()
    given: list[Array] = [np.asarray(place) for place in places]
    wide = np.broadcast_arrays(*given, value)
    for *place, one in zip(*(part.ravel().tolist() for part in wide), strict=True):
        pairs = zip(place, x.shape, strict=True)
        if all(0 <= at < length for at, length in pairs):
            result[tuple(place)] = one
    return result


def _rows(m: Array, v: Array, at: Array) -> Arrays:
    places = at.astype(np.int64)[0] + np.arange(len(v))
    return (_put(m, 2 * v, places[:, None], np.arange(len(m[0]))),)


def _updated(m: Array, v: Array, at: Array) -> Arrays:
    """Add to a row, then multiply a column, each if it is inside."""
    m = m.copy()
    row, column = (int(place) for place in at)
    if 0 <= row < len(m):
        m[row] += v
    if 0 <= column < m.shape[1]:
        m[:, column] *= v
    return (m,)


def _chained(x: Array, y: Array, at: Array) -> Arrays:
    """Each statement sees what those before it have written."""
    x, y = x.copy(), y.copy()
    y += x
    x[at[0]] = y[0]
    y -= x
    y[at[1]] = x.sum()
    return x, y


def _woven(y: Array, a: Array) -> Arrays:
    y = y.copy()
    y[0 : 2 * len(a) : 2], y[1 : 2 * len(a) : 2] = a, -a
    y[::-1][: len(a)] += a
    return (y,)


STORES = (
    Case(
        "stores_a_row_and_a_column",
        "kernel f(mut m: f32[t, n], v: f32[n], row: i32, column: u32) {"
        " m[row, j] = v[j]; m[row + i + 1, column] = 2.0 * v[i]; }",
        lambda draw, n: (draw.f32(n + 3, n), draw.f32(n)),
        lambda m, v: (
            _put(_put(m, v, 2, np.arange(len(v))), 2 * v, 3 + np.arange(len(v)), 0),
        ),
        {"row": 2, "column": 0},
    ),
    Case(
        "stores_one_element",
        "kernel f(mut m: f32[n, n], v: f32[n]) { m[0, n - 1] = v[0]; }",
        lambda draw, n: (draw.f32(n, n), draw.f32(n)),
        lambda m, v: (_put(m, v[0], 0, len(v) - 1),),
    ),
    Case(
        "stores_rows_from_a_position_of_the_device",
        "kernel f(mut m: f32[t, n], v: f32[s, n], at: i32[1]) {"
        " m[at[0] + i, j] = 2.0 * v[i, j]; }",
        lambda draw, n: (draw.f32(7, n), draw.f32(3, n), draw.i32(1, low=-2, high=8)),
        _rows,
    ),
    Case(
        "stores_far_outside",
        "kernel f(mut m: f32[t, n], v: f32[s, n], at: u32[1]) {"
        " m[at[0] + u32(i), j] = 2.0 * v[i, j]; }",
        lambda draw, n: (
            draw.f32(7, n),
            draw.f32(3, n),
            np.array([2**31 + n % 2 * (2**31 - 1)], np.uint32),
        ),
        lambda m, v, at: (
            _rows(m, v[1:], at * 0)[0] if int(at[0]) + 1 == 2**32 else m,
        ),
    ),
    Case(
        "updates_a_row_and_a_column",
        "kernel f(mut m: f32[n, n], v: f32[n], at: i32[2]) {"
        " m[at[0], j] += v[j]; m[i, at[1]] *= v[i]; }",
        lambda draw, n: (draw.f32(n, n), draw.f32(n), draw.i32(2, low=-1, high=n)),
        _updated,
    ),
    Case(
        "stores_a_product",
        "kernel f(mut m: f32[t, n], a: f32[s, k], b: f32[n, k], at: i32[1]) {"
        " m[at[0] + i, j] = sum[p] a[i, p] * b[j, p]; }",
        lambda draw, n: (
            draw.f32(2 * n + 3, n),
            draw.f32(n, 5),
            draw.f32(n, 5),
            draw.i32(1, low=-1, high=n + 4),
        ),
        lambda m, a, b, at: _rows(m, a @ b.T / 2, at),
    ),
    Case(
        "stores_a_product_across",
        "kernel f(mut m: f32[n, t], a: f32[s, k], b: f32[n, k], at: i32[1]) {"
        " m[j, at[0] - i] = sum[p] a[i, p] * b[j, p]; }",
        lambda draw, n: (
            draw.f32(n, 2 * n + 3),
            draw.f32(n, 5),
            draw.f32(n, 5),
            draw.i32(1, low=-1, high=2 * n + 4),
        ),
        lambda m, a, b, at: (
            _put(
                m, b @ a.T, np.arange(len(b))[:, None], int(at[0]) - np.arange(len(a))
            ),
        ),
    ),
    Case(
        "stores_sums_of_rows",
        "kernel f(mut m: f32[t, 3], x: f32[n, n], at: i32[2]) {"
        " let total[i] = sum[j] x[i, j];"
        " m[i + 1, at[1]] = total[i] + (max[j] x[i, j]); }",
        lambda draw, n: (draw.f32(n + 1, 3), draw.f32(n, n), draw.i32(2, low=0)),
        lambda m, x, at: (
            _put(m, x.sum(1) + x.max(1), 1 + np.arange(len(x)), int(at[1])),
        ),
    ),
    Case(
        "stores_rows_that_are_normed",
        "kernel f(mut m: f32[t, n], mut tops: f32[t], x: f32[s, n], gain: f32[n],"
        " at: i32[1]) { let top[i] = max[j] x[i, j];"
        " m[at[0] + i, j] = (x[i, j] - top[i]) * gain[j];"
        " tops[at[0] + i] = top[i]; }",
        lambda draw, n: (
            draw.f32(8, n),
            draw.f32(8),
            draw.f32(3, n),
            draw.f32(n),
            draw.i32(1, low=-2, high=8),
        ),
        lambda m, tops, x, gain, at: (
            _rows(m, (x - x.max(1, keepdims=True)) * gain / 2, at)[0],
            _put(tops, x.max(1), int(at[0]) + np.arange(len(x))),
        ),
    ),
    Case(
        "stores_rows_that_are_normed_across",
        "kernel f(mut m: f32[n, t], x: f32[s, n], at: i32[1]) {"
        " let top[i] = max[j] x[i, j];"
        " m[j, at[0] + i] = (x[i, j] - top[i]); }",
        lambda draw, n: (draw.f32(n, 8), draw.f32(3, n), draw.i32(1, low=-2, high=8)),
        lambda m, x, at: (_rows(m.T, (x - x.max(1, keepdims=True)) / 2, at)[0].T,),
    ),
    Case(
        "stores_one_number_where_the_least_is",
        "kernel f(mut m: f32[n, n], x: f32[n]) {"
        " let least = min[i] x[i]; let first = min[i when x[i] == least] i;"
        " m[first, 0] = least; }",
        lambda draw, n: (draw.f32(n, n), draw.f32(n)),
        lambda m, x: (_put(m, x.min(), int(x.argmin()), 0),),
    ),
    Case(
        "stores_where_it_reads",
        "kernel f(mut x: i32[n]) { x[x[0]] = x[n - 1] + 5; x[0] += x[x[0]]; }",
        lambda draw, n: (draw.i32(n, low=-1, high=n),),
        lambda x: (_read_where_stored(x),),
    ),
    Case(
        "stores_between_other_statements",
        "kernel f(mut x: f32[n], mut y: f32[n], at: i32[2]) {"
        " y[i] += x[i]; x[at[0]] = y[0]; y[i] -= x[i]; y[at[1]] = sum[i] x[i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n), draw.i32(2, low=0, high=n - 1)),
        _chained,
    ),
    Case(
        "stores_every_second",
        "kernel f(mut y: f32[t], a: f32[n]) {"
        " y[2 * i] = a[i]; y[2 * i + 1] = -a[i]; y[t - 1 - i] += a[i]; }",
        lambda draw, n: (draw.f32(3 * n), draw.f32(n)),
        _woven,
    ),
    Case(
        "stores_halves",
        "kernel f(mut m: f16[t, n], v: f32[n], at: i32[]) { m[at, j] = v[j] / 4.0; }",
        lambda draw, n: (
            draw.f32(n + 1, n).astype(np.float16),
            draw.f32(n),
            np.array(n // 2, np.int32),
        ),
        lambda m, v, at: (_put(m, v / 4, int(at), np.arange(len(v))),),
    ),
)


def _read_where_stored(x: Array) -> Array:
    x = _put(x, x[-1] + 5, int(x[0]))
    x[0] += x[np.clip(x[0], 0, len(x) - 1)]
    return x
