"""Tensors of f16, mixed with f32 in every way, and their meaning.

What is written here is exact in f16, or lies so close above an even number that it is
rounded to it whether an adapter rounds to nearest or toward zero: WGSL allows both.
"""

from __future__ import annotations

import numpy as np

from tests.language.cases import Array, Case, Inputs

BETWEEN = np.array(
    [
        *(2048.25, 2049, 2049.5, 2051, -1 / 3, 1e-9, 3e-8, -1e-7, 1e-5, 6.1e-5),
        *(6.1035e-5, 2**-14, 65504, 65519, 65520, -65520, 7e4, 3e38, np.inf, np.nan),
        *(0.0, -0.0, 2**-25, 3 * 2**-25, -np.inf, 1.00048828125, 1.00146484375),
    ],
    np.float32,
)
"""Numbers that no f16 holds, with the extremes of those that one does."""


def _half(draw: Inputs, *shape: int) -> Array:
    return draw.f32(*shape).astype(np.float16)


def _wide(x: Array) -> Array:
    return x.astype(np.float32)


def _kept(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float16)


def _clamped(x: Array, at: Array) -> Array:
    result: Array = x[np.clip(at, 0, x.shape[0] - 1)]
    return result


HALVES = (
    Case(
        "scales_halves",
        "kernel f(x: f16[n], a: f32) -> y: f16[n] { y[i] = a * x[i] + 0.5; }",
        lambda draw, n: (_half(draw, n),),
        lambda x: (_kept(2 * _wide(x) + 0.5),),
        {"a": 2.0},
    ),
    Case(
        "widens_and_narrows",
        "kernel f(x: f16[m, n], y: f32[m, n]) -> a: f32[m, n], b: f16[m, n] {"
        " a[i, j] = x[i, j]; b[i, j] = y[i, j]; }",
        lambda draw, n: (_half(draw, 3, n), draw.f32(3, n)),
        lambda x, y: (_wide(x), _kept(y)),
    ),
    Case(
        "changes_halves_in_place",
        "kernel f(mut x: f16[n], g: f32[n]) { x[i] -= 0.5 * g[i]; }",
        lambda draw, n: (_half(draw, n), draw.f32(n)),
        lambda x, g: (_kept(_wide(x) - g / 2),),
    ),
    Case(
        "reads_back_what_it_rounded",
        "kernel f(x: f32[n]) -> y: f16[n], z: f32[n] {"
        " y[i] = 2.0 * x[i] + 2048.25; z[i] = y[i] - 2048.0; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (_kept(2 * x + 2048), 2 * x),
    ),
    Case(
        "rounds_to_the_nearest",
        "kernel f(x: f32[n]) -> y: f16[n], z: f32[n] { y[i] = x[i]; z[i] = y[i]; }",
        lambda _, n: (np.resize(BETWEEN, n),),
        lambda x: (_kept(x), _wide(_kept(x))),
    ),
    Case(
        "rounds_at_every_write",
        "kernel f(mut x: f16[n]) -> z: f32[n] {"
        " x[i] = 2.0 * x[i] + 2048.25; x[i] += 0.25; z[i] = x[i]; x[i] += 0.25; }",
        lambda draw, n: (_half(draw, n),),
        lambda x: (2 * x + 2048, _wide(2 * x + 2048)),
    ),
    Case(
        "reads_back_in_a_later_stage",
        "kernel f(x: f32[m, n]) -> y: f16[m, n], s: f32[m] {"
        " y[i, j] = 2.0 * x[i, j] + 2048.25; s[i] = sum[j] (y[i, j] - 2048.0); }",
        lambda draw, n: (draw.f32(5, n),),
        lambda x: (_kept(2 * x + 2048), 2 * x.sum(1)),
    ),
    Case(
        "keeps_lets_whole",
        "kernel f(x: f16[n]) -> y: f32[n] {"
        " let t[i] = x[i] + 2048.25; let s = sum[i] t[i]; y[i] = t[i] - 0.25 * s; }",
        lambda draw, n: (0 * _half(draw, n),),
        lambda x: (_wide(x) + np.float32(2048.25 * (1 - x.size / 4)),),
    ),
    Case(
        "reduces_halves_to_a_half",
        "kernel f(x: f16[m, n]) -> low: f16[], total: f16[m], top: f32[n] {"
        " low = min[i, j] x[i, j]; total[i] = sum[j] x[i, j]; top[j] = max[i] x[i, j]; }",
        lambda draw, n: (_half(draw, 7, n),),
        lambda x: (x.min(), _kept(_wide(x).sum(1)), _wide(x.max(0))),
    ),
    Case(
        "multiplies_halves",
        "kernel f(a: f16[m, k], b: f16[k, n]) -> c: f16[m, n] {"
        " c[i, j] = sum[p] a[i, p] * b[p, j]; }",
        lambda draw, n: (_half(draw, n, 19), _half(draw, 19, n)),
        lambda a, b: (_kept(_wide(a) @ _wide(b)),),
    ),
    Case(
        "multiplies_halves_by_floats",
        "kernel f(a: f16[m, k], b: f32[n, k], bias: f16[n]) -> c: f32[m, n] {"
        " c[i, j] = sum[p] a[i, p] * b[j, p] + bias[j]; }",
        lambda draw, n: (_half(draw, 64, n), draw.f32(12, n), _half(draw, 12)),
        lambda a, b, bias: (_wide(a) @ b.T + bias,),
    ),
    Case(
        "multiplies_whole_tiles_of_halves",
        "kernel f(a: f32[k, m], b: f16[k, n]) -> c: f16[m, n] {"
        " c[i, j] = max(sum[p] a[p, i] * b[p, j], 0.0); }",
        lambda draw, n: (draw.f32(32, 128), _half(draw, 32, n)),
        lambda a, b: (_kept(np.maximum(a.T @ _wide(b), 0)),),
    ),
    Case(
        "takes_a_vector_through_halves",
        "kernel f(w: f16[m, k], x: f32[k], mut y: f16[m], v: f32[m]) -> z: f16[k] {"
        " y[i] += sum[p] w[i, p] * x[p]; z[p] = sum[i] w[i, p] * v[i]; }",
        lambda draw, n: (_half(draw, n, 16), draw.f32(16), _half(draw, n), draw.f32(n)),
        lambda w, x, y, v: (_kept(_wide(y) + _wide(w) @ x), _kept(v @ _wide(w))),
    ),
    Case(
        "gathers_halves",
        "kernel f(table: f16[v, d], ids: i32[n]) -> y: f16[n, d], z: f32[n, d] {"
        " y[i, p] = table[ids[i], p]; z[i, p] = table[ids[i], p] - table[ids[i], 0]; }",
        lambda draw, n: (_half(draw, 9, n), draw.i32(13, low=-2, high=10)),
        lambda table, ids: (
            _clamped(table, ids),
            _wide(_clamped(table - table[:, :1], ids)),
        ),
    ),
    Case(
        "slides_over_halves",
        "kernel f(x: f16[n], w: f16[3]) -> y: f16[n] {"
        " y[i] = sum[u < 3] if i >= u { x[i - u] * w[u] } else { 0.0 }; }",
        lambda draw, n: (_half(draw, n), _half(draw, 3)),
        lambda x, w: (_kept(np.convolve(_wide(x), _wide(w))[: len(x)]),),
    ),
    Case(
        "permutes_halves_in_place",
        "kernel f(mut x: f16[n, n]) { x[i, j] = x[j, i] + 1.0; }",
        lambda draw, n: (_half(draw, n, n),),
        lambda x: (x.T + np.float16(1),),
    ),
    Case(
        "fills_halves",
        "kernel f(x: f32[n]) -> y: f16[n], z: f32[n], o: f16[] {"
        " y[i] = 1.5; z[i] = x[i] + y[i]; o = 65504.0; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (_kept(0 * x + 1.5), x + 1.5, _kept(np.array(65504))),
    ),
)
