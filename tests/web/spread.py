"""Kernels that use much of the language at once, with their meaning in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Draw: TypeAlias = np.random.Generator
Result: TypeAlias = Array | tuple[Array, ...]
Meaning: TypeAlias = (
    Callable[[Array], Result]
    | Callable[[Array, Array], Result]
    | Callable[[Array, Array, Array], Result]
    | Callable[[Array, Array, Array, Array], Result]
)


@dataclass(frozen=True)
class Task:
    """Arguments for a size, and what a kernel changes and returns, of them in float64."""

    arguments: Callable[[Draw, int], tuple[Array, ...]]
    meaning: Meaning
    scalars: Mapping[str, Any] = field(default_factory=dict[str, Any])


SOURCE = """
/// Attention whose scores are capped and lose with distance.
kernel capped_attention(q: f32[s, d], k: f32[t, d], v: f32[t, e], cap: f32) -> y: f32[s, e] {
    let score[i, j] = sum[p] q[i, p] * k[j, p];
    let held[i, j] = cap * tanh(score[i, j] / cap) - 0.1 * f32(abs(i - j));
    let top[i] = max[j] held[i, j];
    let total[i] = sum[j] exp(held[i, j] - top[i]);
    let weight[i, j] = exp(held[i, j] - top[i]) / total[i];
    y[i, c] = sum[j] weight[i, j] * v[j, c];
}

kernel plain_attention(q: f32[s, d], k: f32[t, d], v: f32[t, e]) -> y: f32[s, e] {
    let score[i, j] = 0.25 * sum[p] q[i, p] * k[j, p];
    let top[i] = max[j] score[i, j];
    let total[i] = sum[j] exp(score[i, j] - top[i]);
    y[i, c] = sum[j] (exp(score[i, j] - top[i]) / total[i]) * v[j, c];
}
schedule plain_attention.score { flash }

kernel attention_by_v = gradient of plain_attention by q, v;

/// What is left of a mean after each place, of rows.
kernel suffix(x: f32[m, n]) -> y: f32[m, n], total: f32[m] {
    let after[i, j] = sum[p when p > j] x[i, p];
    y[i, j] = after[i, j] / f32(n - j);
    total[i] = sum[j] x[i, j];
}

/// The greatest loss against an earlier price.
kernel drawdown(price: f32[n]) -> y: f32[] {
    let best[i < n] = max[j when j <= i] price[j];
    y = max[i] (best[i] - price[i]);
}

/// A damped oscillator, forced.
kernel oscillator(force: f32[n, m], damping: f32) -> place: f32[n, m] {
    let x[t, c] =
        if t == 0 { force[t, c] }
        else if t == 1 { force[t, c] + damping * x[t - 1, c] }
        else { force[t, c] + damping * x[t - 1, c] - 0.5 * x[t - 2, c] };
    place[t, c] = x[t, c];
}

/// The longest common subsequence, a row after the other.
kernel alike(a: u32[m], b: u32[n]) -> length: i32[m, n] {
    let same[i, j] = if a[i] == b[j] { 1 } else { 0 };
    let up[i, j] =
        if i > 0 { max(up[i - 1, j], same[i, j] + (if j > 0 { up[i - 1, max(j - 1, 0)] } else { 0 })) }
        else { same[i, j] };
    length[i, j] = up[i, j];
}

/// Of each key, the place of its greatest element, and the sum of them.
kernel best_of_keys(x: f32[n], keys: u32[n], k: u32) -> at: i32[k], total: f32[k] {
    at[q] = argmax[i when keys[i] == u32(q)] x[i];
    total[q] = sum[i when keys[i] == u32(q)] x[i];
}

/// The nearest of some centres.
kernel nearest(x: f32[n, d], c: f32[k, d]) -> which: i32[n], far: f32[n] {
    let square[i, j] = sum[p] (x[i, p] - c[j, p]) * (x[i, p] - c[j, p]);
    which[i] = argmin[j] square[i, j];
    far[i] = sqrt(square[i, which[i]]);
}

/// Weights of 4 and of 8 bits.
kernel narrow_weights(x: f32[s, d], w: i4[f, d], u: u8[f, d], by: f32 = 0.125) -> y: f32[s, f] {
    require d % 2 == 0;
    y[i, j] = by * sum[p] x[i, p] * (f32(w[j, p]) + f32(u[j, p]));
}

/// Integers rounded to 8 bits, with the scale of their row.
kernel rounded(x: f32[m, n]) -> q: i32[m, n], scale: f32[m] {
    let top[i] = max[j] abs(x[i, j]);
    let unit[i] = max(top[i], 0.001) / 127.0;
    scale[i] = unit[i];
    q[i, j] = i32(round(x[i, j] / unit[i]));
}

kernel halves(x: f16[m, n], y: f16[m, n]) -> z: f16[m, n] {
    z[i, j] = 0.5 * (x[i, j] + y[i, j]);
}

/// All bodies attract each other; a vector of three takes the room of four.
kernel pull(places: vec3f[n], masses: f32[n], soft: f32) -> force: vec3f[n] {
    force[i] = sum[j] (masses[j] / (dot(places[j] - places[i], places[j] - places[i]) + soft))
        * (places[j] - places[i]);
}

/// A turn by a matrix that is a scalar.
kernel turned(x: vec2f[n], by: mat2x2f, shift: vec2f) -> y: vec2f[n] {
    y[i] = by * x[i] + shift;
}

/// A window of odd and even places, with a border.
kernel pooled(x: f32[h, w], by: u32) -> y: f32[h / by, w / by] {
    host side = i32(by);
    y[i, j] = max[u < side, v < side] x[i * side + u + 0, j * side + v + 0];
}

/// Reads at places that are data, clamped.
kernel gathered(table: f32[k, d], at: i32[n]) -> y: f32[n, d] {
    y[i, j] = table[at[i], j] - (if at[i] > 2 { table[0, j] } else { 0.0 });
}

kernel spread_back = gradient of gathered by table;

/// In place, with a scalar that decides.
kernel stepped(mut x: f32[n], m: f32[n], rate: f32 = 0.5, nesterov: u32 = 0) {
    x[i] -= rate * (if nesterov == 1 { 2.0 * m[i] } else { m[i] });
}

/// Three dispatches by turns: a product for each step.
kernel powers(a: f32[n, n], x: f32[n], steps: u32) -> y: f32[n] {
    let v[s < steps + 1, i < n] = if s > 0 { sum[j] a[i, j] * v[s - 1, j] } else { x[i] };
    y[i] = v[i32(steps), i];
}

/// A product, its bias and its gate in one.
kernel gated(x: f32[s, d], w: f32[d, f], g: f32[d, f], b: f32[f]) -> y: f32[s, f] {
    let a[i, j] = sum[p] x[i, p] * w[p, j];
    let c[i, j] = sum[p] x[i, p] * g[p, j];
    y[i, j] = (a[i, j] + b[j]) / (1.0 + exp(-c[i, j]));
}

/// Triangles: ranges that follow another index.
kernel triangle(x: f32[n, n], y: f32[n, n]) -> z: f32[n, n] {
    z[i, j] = sum[p when p <= i and p >= j] x[i, p] * y[p, j];
}

/// Bits and unsigned arithmetic, wrapping.
kernel hashed(x: u32[n], salt: u32) -> y: u32[n] {
    let a[i] = (x[i] ^ salt) * 2654435761;
    y[i] = (a[i] ^ (a[i] >> 15)) + countOneBits(x[i]) + (u32(i) << 3);
}
"""


def _softmax(score: Array) -> Array:
    power = np.exp(score - score.max(-1, keepdims=True))
    result: Array = power / power.sum(-1, keepdims=True)
    return result


def _capped(q: Array, k: Array, v: Array) -> Array:
    score = q @ k.T
    far = np.abs(np.subtract.outer(np.arange(len(q)), np.arange(len(k))))
    result: Array = _softmax(3 * np.tanh(score / 3) - 0.1 * far) @ v
    return result


def _attention_back(q: Array, k: Array, v: Array, dy: Array) -> tuple[Array, ...]:
    weight = _softmax(0.25 * q @ k.T)
    by_weight = dy @ v.T
    by_score = weight * (by_weight - (by_weight * weight).sum(-1, keepdims=True))
    return 0.25 * by_score @ k, weight.T @ dy


def _suffix(x: NDArray[np.float64]) -> tuple[Array, ...]:
    after = x.sum(1, keepdims=True) - np.cumsum(x, 1)
    return after / np.arange(x.shape[1], 0.0, -1.0), x.sum(1)


def _oscillator(force: Array) -> Array:
    x = force.copy()
    for t in range(1, len(x)):
        x[t] += 0.9 * x[t - 1]
        if t > 1:
            x[t] -= 0.5 * x[t - 2]
    return x


def _alike(a: Array, b: Array) -> Array:
    same = (a[:, None] == b[None, :]).astype(np.int64)
    up: Array = same.copy()
    for i in range(1, len(a)):
        before = np.concatenate([[0], up[i - 1, :-1]])
        up[i] = np.maximum(up[i - 1], same[i] + before)
    return up


def _best(x: Array, keys: Array) -> tuple[Array, ...]:
    places: list[int] = []
    totals: list[float] = []
    for key in range(5):
        own = np.flatnonzero(keys == key)
        places.append(int(own[np.argmax(x[own])]) if len(own) else -1)
        totals.append(float(x[own].sum()))
    return np.array(places), np.array(totals)


def _nearest(x: Array, c: Array) -> tuple[Array, ...]:
    square = ((x[:, None] - c[None]) ** 2).sum(-1)
    return square.argmin(1), np.sqrt(square.min(1))


def _rounded(x: Array) -> tuple[Array, ...]:
    unit = np.maximum(np.abs(x).max(1), 0.001) / 127
    return np.rint(x / unit[:, None]), unit


def _pull(places: Array, masses: Array) -> Array:
    apart = places[None] - places[:, None]
    by = masses[None] / ((apart**2).sum(-1) + 0.5)
    result: Array = (by[..., None] * apart).sum(1)
    return result


def _gathered(table: Array, at: Array) -> Array:
    held = np.clip(at, 0, len(table) - 1)
    result: Array = table[held] - np.where(at > 2, 1, 0)[:, None] * table[0]
    return result


def _spread(at: Array, dy: Array) -> Array:
    result = np.zeros((5, dy.shape[1]))
    np.add.at(result, np.clip(at, 0, 4), dy)
    result[0] -= dy[at > 2].sum(0)
    return result


def _hashed(x: Array) -> Array:
    a = (x ^ np.uint32(77)) * np.uint32(2654435761)
    ones = np.array([int(each).bit_count() for each in x], np.uint32)
    return (
        (a ^ (a >> np.uint32(15)))
        + ones
        + (np.arange(len(x), dtype=np.uint32) << np.uint32(3))
    )


def _f(r: Draw, *shape: int) -> Array:
    return r.uniform(-1, 1, shape).astype(np.float32)


def _eighths(r: Draw, *shape: int) -> Array:
    """Numbers that are exact in every type, so that places and roundings are certain."""
    return (r.integers(-400, 400, shape) / 8).astype(np.float32)


TASKS: Mapping[str, Task] = {
    "capped_attention": Task(
        lambda r, n: (_f(r, n, 8), _f(r, n + 5, 8), _f(r, n + 5, 6)),
        _capped,
        {"cap": 3.0},
    ),
    "plain_attention": Task(
        lambda r, n: (_f(r, n, 24), _f(r, n + 9, 24), _f(r, n + 9, 40)),
        lambda q, k, v: _softmax(0.25 * q @ k.T) @ v,
    ),
    "suffix": Task(lambda r, n: (_f(r, 3, n),), _suffix),
    "drawdown": Task(
        lambda r, n: (_f(r, n),), lambda x: (np.maximum.accumulate(x) - x).max()
    ),
    "oscillator": Task(lambda r, n: (_f(r, n, 7),), _oscillator, {"damping": 0.9}),
    "alike": Task(
        lambda r, n: (
            r.integers(0, 3, n).astype(np.uint32),
            r.integers(0, 3, n + 2).astype(np.uint32),
        ),
        _alike,
    ),
    "best_of_keys": Task(
        lambda r, n: (_eighths(r, n), r.integers(0, 6, n).astype(np.uint32)),
        _best,
        {"k": 5},
    ),
    "nearest": Task(lambda r, n: (_f(r, n, 5), _f(r, 9, 5)), _nearest),
    "narrow_weights": Task(
        lambda r, n: (
            _f(r, 3, 2 * n),
            r.integers(-8, 8, (n, 2 * n)).astype(np.int8),
            r.integers(0, 256, (n, 2 * n)).astype(np.uint8),
        ),
        lambda x, w, u: 0.125 * x @ (w + u).T,
    ),
    "rounded": Task(lambda r, n: (_f(r, 4, 4 * n),), _rounded),
    "halves": Task(
        lambda r, n: (
            _eighths(r, 3, 2 * n).astype(np.float16),
            _eighths(r, 3, 2 * n).astype(np.float16),
        ),
        lambda x, y: (0.5 * (x + y)).astype(np.float16),
    ),
    "pull": Task(lambda r, n: (_f(r, n, 3), _f(r, n)), _pull, {"soft": 0.5}),
    "turned": Task(
        lambda r, n: (_f(r, n, 2),),
        lambda x: x @ np.array([[0.0, 1.0], [-1.0, 0.5]]) + [1, 2],
        {"by": ((0.0, 1.0), (-1.0, 0.5)), "shift": (1.0, 2.0)},
    ),
    "pooled": Task(
        lambda r, n: (_f(r, 3 * n, 3 * n + 2),),
        lambda x: x[:, : len(x)].reshape(len(x) // 3, 3, len(x) // 3, 3).max((1, 3)),
        {"by": 3},
    ),
    "gathered": Task(
        lambda r, n: (_f(r, 5, 6), r.integers(-3, 9, n).astype(np.int32)), _gathered
    ),
    "spread_back": Task(
        lambda r, n: (r.integers(-3, 9, n).astype(np.int32), _f(r, n, 6)),
        _spread,
        {"k_len": 5},
    ),
    "attention_by_v": Task(
        lambda r, n: (_f(r, n, 24), _f(r, n + 9, 24), _f(r, n + 9, 12), _f(r, n, 12)),
        _attention_back,
    ),
    "stepped": Task(
        lambda r, n: (_f(r, n), _f(r, n)), lambda x, m: x - m, {"nesterov": 1}
    ),
    "powers": Task(
        lambda r, n: (_f(r, n, n) / n, _f(r, n)),
        lambda a, x: a @ (a @ (a @ x)),
        {"steps": 3},
    ),
    "gated": Task(
        lambda r, n: (_f(r, n, n + 3), _f(r, n + 3, 20), _f(r, n + 3, 20), _f(r, 20)),
        lambda x, w, g, b: (x @ w + b) / (1 + np.exp(-x @ g)),
    ),
    "triangle": Task(
        lambda r, n: (_f(r, n, n), _f(r, n, n)), lambda x, y: np.tril(x) @ np.tril(y)
    ),
    "hashed": Task(
        lambda r, n: (r.integers(0, 2**32, n).astype(np.uint32),), _hashed, {"salt": 77}
    ),
}
