"""Kernels with their meaning in NumPy.

Inputs are small integers, so that every sum and product is exact in f32 whatever its
order: results are compared bit for bit, under every schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = tuple[Array, ...]
Meaning: TypeAlias = (
    Callable[[Array], Arrays]
    | Callable[[Array, Array], Arrays]
    | Callable[[Array, Array, Array], Arrays]
    | Callable[[Array, Array, Array, Array], Arrays]
    | Callable[[Array, Array, Array, Array, Array], Arrays]
)


class Inputs:
    """Draws arrays of small integers."""

    def __init__(self, seed: int) -> None:
        """Start from a seed."""
        self._random = np.random.default_rng(seed)

    def f32(self, *shape: int) -> Array:
        """Draw from -3 to 3."""
        return self._random.integers(-3, 4, shape).astype(np.float32)

    def i32(self, *shape: int, low: int = -3, high: int = 3) -> Array:
        """Draw from `low` to `high`."""
        return self._random.integers(low, high + 1, shape).astype(np.int32)

    def u32(self, *shape: int, high: int = 3) -> Array:
        """Draw from 0 to `high`."""
        return self._random.integers(0, high + 1, shape).astype(np.uint32)


@dataclass(frozen=True)
class Case:
    """A kernel's text, its arguments for a size n, and what it must give.

    `meaning` returns the tensors that change, then the outputs.
    """

    name: str
    text: str
    arguments: Callable[[Inputs, int], Arrays]
    meaning: Meaning
    scalars: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        """The name, as tests show it."""
        return self.name


def _pcg(x: Array) -> Array:
    """The PCG hash of O'Neill 2014, in its 32-bit form."""
    u = np.uint32
    state = x * u(747796405) + u(2891336453)
    word = ((state >> ((state >> u(28)) + u(4))) ^ state) * u(277803737)
    result: Array = (word >> u(22)) ^ word
    return result


def _scatter(dy: Array, ids: Array, table: Array) -> Array:
    total = np.zeros_like(table)
    np.add.at(total, ids, dy)
    return total


def _banded(n: int) -> Array:
    """How far below the diagonal, except there and on every third line from it."""
    i, j = np.indices((n, n))
    return np.where((j <= i) & ((i - j) % 3 != 1), i - j, 0).astype(np.float32)


def _many_lets(a: Array, v: Array) -> Arrays:
    """What lets of c = 2 a - 2, g = c, h = 3 a - 2 and l = 4 a - 2 make."""
    v = v + 4 * a - 2
    t = v + 2 * a - 2
    y = t + v[::-1]
    return 2 * a - 2, v, y, y * t


PCG = """
fn pcg(x: u32) -> u32 {
    let state = x * 747796405 + 2891336453;
    let word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737;
    (word >> 22) ^ word
}
"""

CASES = (
    Case(
        "reads_all_of_what_it_writes",
        "kernel f(mut x: f32[n]) { x[i] = x[i] - (sum[j] x[j]); }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (x - x.sum(),),
    ),
    Case(
        "reads_others_of_what_it_writes",
        "kernel f(w: f32[n, n], mut x: f32[n]) { x[i] = sum[j] w[i, j] * x[j]; }",
        lambda draw, n: (draw.f32(n, n), draw.f32(n)),
        lambda w, x: (w @ x,),
    ),
    Case(
        "permutes_in_place",
        "kernel f(mut x: f32[n], ids: i32[n]) { x[i] = x[ids[i]]; }",
        lambda draw, n: (draw.f32(n), draw.i32(n, low=0, high=n - 1)),
        lambda x, ids: (x[ids],),
    ),
    Case(
        "swaps_by_a_let",
        "kernel f(mut x: f32[n], mut y: f32[n]) {"
        " let old[i] = x[i]; x[i] = y[i]; y[i] = old[i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n)),
        lambda x, y: (y, x),
    ),
    Case(
        "keeps_a_let_from_before_a_write",
        "kernel f(mut x: f32[n]) -> s: f32[] {"
        " let old[i] = 2.0 * x[i]; x[i] += 1.0; s = sum[i] old[i] * x[i]; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (x + 1, np.asarray(2 * x @ (x + 1))),
    ),
    Case(
        "clamps_signed_gathers",
        "kernel f(x: f32[n, k], ids: i32[m]) -> y: f32[m, k] { y[i, j] = x[ids[i], j]; }",
        lambda draw, n: (draw.f32(n, 5), draw.i32(7, low=-4, high=n + 3)),
        lambda x, ids: (x[np.clip(ids, 0, len(x) - 1)],),
    ),
    Case(
        "clamps_unsigned_gathers",
        "kernel f(x: f32[m, k], ids: u32[m]) -> y: f32[m] { y[i] = x[i, ids[i]]; }",
        lambda draw, n: (draw.f32(9, n), draw.u32(9, high=n + 3)),
        lambda x, ids: (x[np.arange(9), np.minimum(ids, x.shape[1] - 1)],),
    ),
    Case(
        "gathers_of_a_let",
        "kernel f(x: f32[n], ids: i32[n]) -> y: f32[n] {"
        " let e[i] = 2.0 * x[i] + f32(i); y[i] = e[ids[i]]; }",
        lambda draw, n: (draw.f32(n), draw.i32(n, low=-2, high=n + 1)),
        lambda x, ids: (
            (2 * x + np.arange(len(x)))[np.clip(ids, 0, len(x) - 1)].astype(np.float32),
        ),
    ),
    Case(
        "reads_its_own_element_and_a_gathered_one",
        "kernel f(x: f32[n], ids: i32[n], mut w: f32[n]) {"
        " w[i] += x[ids[i]]; w[i] *= x[i]; }",
        lambda draw, n: (draw.f32(n), draw.i32(n, low=-2, high=n + 1), draw.f32(n)),
        lambda x, ids, w: ((w + x[np.clip(ids, 0, len(x) - 1)]) * x,),
    ),
    Case(
        "an_index_of_several_lengths",
        "kernel f(x: f32[n], z: f32[m, n]) -> y: f32[n], w: f32[n - 1], v: f32[n] {"
        " y[t] = x[t] * f32(t); w[t] = sum[r < 2] x[t + r] * z[min(r, 1), t / 2];"
        " v[t] = x[t] + f32(t); }",
        lambda draw, n: (draw.f32(n), draw.f32(3, n)),
        lambda x, z: (
            (x * np.arange(len(x))).astype(np.float32),
            x[:-1] * z[0, np.arange(len(x) - 1) // 2]
            + x[1:] * z[1, np.arange(len(x) - 1) // 2],
            (x + np.arange(len(x))).astype(np.float32),
        ),
    ),
    Case(
        "outer_product",
        "kernel f(a: f32[m], b: f32[n]) -> c: f32[m, n] { c[i, j] = a[i] * b[j]; }",
        lambda draw, n: (draw.f32(6), draw.f32(n)),
        lambda a, b: (np.outer(a, b),),
    ),
    Case(
        "windows_of_rows",
        "kernel f(x: f32[m, n]) -> y: f32[m, n - 1] {"
        " y[i, j] = max[u < 2] x[i, j + u] * f32(1 + u); }",
        lambda draw, n: (draw.f32(6, n),),
        lambda x: (np.maximum(x[:, :-1], 2 * x[:, 1:]),),
    ),
    Case(
        "transpose",
        "kernel f(x: f32[m, n]) -> y: f32[n, m] { y[j, i] = x[i, j]; }",
        lambda draw, n: (draw.f32(n, 12),),
        lambda x: (x.T,),
    ),
    Case(
        "nested_reductions",
        "kernel f(x: f32[m, n]) -> s: f32[] { s = sum[i] max[j] x[i, j]; }",
        lambda draw, n: (draw.f32(17, n),),
        lambda x: (np.asarray(x.max(1).sum()),),
    ),
    Case(
        "reduction_over_two_axes_around_a_third",
        "kernel f(x: f32[a, b, c]) -> s: f32[b] { s[j] = sum[i, k] x[i, j, k]; }",
        lambda draw, n: (draw.f32(3, n, 8),),
        lambda x: (x.sum((0, 2)),),
    ),
    Case(
        "batched_product",
        "kernel f(a: f32[b, m, k], c: f32[b, k, n]) -> d: f32[b, m, n] {"
        " d[q, i, j] = sum[p] a[q, i, p] * c[q, p, j]; }",
        lambda draw, n: (draw.f32(3, 5, n), draw.f32(3, n, 9)),
        lambda a, c: (a @ c,),
    ),
    Case(
        "product_with_itself",
        "kernel f(a: f32[m, k]) -> g: f32[m, m] { g[i, j] = sum[p] a[i, p] * a[j, p]; }",
        lambda draw, n: (draw.f32(n, 20),),
        lambda a: (a @ a.T,),
    ),
    Case(
        "product_of_transposes",
        "kernel f(a: f32[k, m], b: f32[n, k]) -> c: f32[m, n] {"
        " c[i, j] = sum[p] a[p, i] * b[j, p]; }",
        lambda draw, n: (draw.f32(16, n), draw.f32(64, 16)),
        lambda a, b: ((b @ a).T,),
    ),
    Case(
        "two_products_in_a_row",
        "kernel f(a: f32[m, k], b: f32[k, n], c: f32[n, l]) -> d: f32[m, l] {"
        " let t[i, j] = sum[p] a[i, p] * b[p, j]; d[i, q] = sum[j] t[i, j] * c[j, q]; }",
        lambda draw, n: (draw.f32(7, n), draw.f32(n, 9), draw.f32(9, 5)),
        lambda a, b, c: (a @ b @ c,),
    ),
    Case(
        "literal_dims",
        "kernel f(x: f32[h, w, 3], k: f32[3]) -> y: f32[h, w] {"
        " y[i, j] = sum[c] x[i, j, c] * k[c]; }",
        lambda draw, n: (draw.f32(4, n, 3), draw.f32(3)),
        lambda x, k: (x @ k,),
    ),
    Case(
        "axes_longer_than_the_index",
        "kernel f(x: f32[m, 8], z: f32[8], y: f32[m, n]) -> w: f32[m, n] {"
        " w[i, j] = x[i, j] * z[j] + y[i, j]; }",
        lambda draw, n: (draw.f32(n, 8), draw.f32(8), draw.f32(n, min(n, 5))),
        lambda x, z, y: ((x * z)[:, : y.shape[1]] + y,),
    ),
    Case(
        "a_sum_over_part_of_an_axis",
        "kernel f(x: f32[m, 8], y: f32[k, n]) -> w: f32[m, n] {"
        " w[i, j] = sum[p] y[p, j] * x[i, p]; }",
        lambda draw, n: (draw.f32(64, 8), draw.f32(min(n, 7), 4 * n)),
        lambda x, y: (x[:, : len(y)] @ y,),
    ),
    Case(
        "two_outputs_and_a_reused_let",
        "kernel f(x: f32[m, n]) -> v: f32[m], s: f32[m] { s[i] = sum[j] x[i, j];"
        " let d[i, j] = x[i, j] - s[i]; v[i] = sum[j] d[i, j] * d[i, j]; }",
        lambda draw, n: (np.sign(draw.f32(5, n)),),
        lambda x: (((x - x.sum(1)[:, None]) ** 2).sum(1), x.sum(1)),
    ),
    Case(
        "let_used_in_a_reduction_and_at_its_element",
        "kernel f(x: f32[m, n]) -> y: f32[m, n] { let d[i, j] = 2.0 * x[i, j] - 1.0;"
        " let s[i] = sum[j] d[i, j]; y[i, j] = d[i, j] * s[i]; }",
        lambda draw, n: (draw.f32(5, n),),
        lambda x: ((2 * x - 1) * (2 * x - 1).sum(1)[:, None],),
    ),
    Case(
        "several_reductions_in_a_statement",
        "kernel f(x: f32[n], y: f32[n]) -> s: f32[] {"
        " s = (sum[i] x[i]) * (sum[i] y[i]) + max[i] x[i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n)),
        lambda x, y: (np.asarray(x.sum() * y.sum() + x.max()),),
    ),
    Case(
        "integer_reductions",
        "kernel f(x: i32[n]) -> s: i32[], p: i32[], lo: i32[], hi: i32[] {"
        " s = sum[i] x[i]; p = prod[i] x[i]; lo = min[i] x[i]; hi = max[i] x[i]; }",
        lambda draw, n: (draw.i32(n, low=1, high=9),),
        lambda x: (
            np.asarray(np.sum(x, dtype=np.int32)),
            np.asarray(np.multiply.reduce(x, dtype=np.int32)),
            np.asarray(x.min()),
            np.asarray(x.max()),
        ),
    ),
    Case(
        "counts_by_a_branch",
        "kernel f(x: f32[n]) -> c: i32[] { c = sum[i] if x[i] > 0.0 { 1 } else { 0 }; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (np.asarray((x > 0).sum(), np.int32),),
    ),
    Case(
        "scatter_as_a_gather",
        "kernel f(dy: f32[t, d], ids: u32[t], table: f32[v, d]) -> g: f32[v, d] {"
        " g[q, j] = sum[s] if i32(ids[s]) == q { dy[s, j] } else { 0.0 }; }",
        lambda draw, n: (draw.f32(n, 4), draw.u32(n, high=6), draw.f32(7, 4)),
        lambda dy, ids, table: (_scatter(dy, ids, table),),
    ),
    Case(
        "indices_as_values",
        "kernel f(x: f32[n, n]) -> y: f32[n, n] {"
        " y[i, j] = if j <= i and (i - j) % 3 != 1 { x[i, j] * f32(i - j) } else { 0.0 }; }",
        lambda draw, n: (draw.f32(n, n),),
        lambda x: (_banded(len(x)) * x,),
    ),
    Case(
        "counter_based_random_numbers",
        PCG + "kernel f(seed: u32, x: u32[n]) -> y: u32[n] {"
        " y[i] = pcg(u32(i) ^ seed) + x[i]; }",
        lambda draw, n: (draw.u32(n),),
        lambda x: (_pcg(np.arange(len(x), dtype=np.uint32) ^ np.uint32(77)) + x,),
        {"seed": 77},
    ),
    Case(
        "vector_parameters",
        "kernel f(p: vec3f, s: f32 = 2.0, q: vec2i, x: f32[n]) -> y: f32[n] {"
        " y[i] = s * x[i] + p.z + f32(q.y); }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (2 * x + 10,),
        {"p": (1, 2, 3), "q": (5, 7)},
    ),
    Case(
        "rank_0",
        "const HALF: f32 = 0.5;"
        "kernel f(a: f32[], b: f32[]) -> c: f32[] { c = a * b + HALF; }",
        lambda draw, _: (draw.f32(), draw.f32()),
        lambda a, b: (np.asarray(a * b + np.float32(0.5)),),
    ),
    Case(
        "rank_0_accumulator",
        "fn sq(x: f32) -> f32 { let y = x * x; y }"
        "kernel f(mut total: f32[], x: f32[n]) { total += sum[i] sq(x[i]); }",
        lambda draw, n: (draw.f32(), draw.f32(n)),
        lambda total, x: (np.asarray(total + x @ x),),
    ),
    Case(
        "functions_that_ignore_their_arguments",
        "fn g(x: f32, k: i32) -> f32 { let h = x; let t = f32(k) * 2.0; t }"
        " fn h(x: f32) -> f32 { sqrt(4.0) }"
        " kernel f(x: f32[n]) -> y: f32[n], s: f32[] {"
        " y[i] = h(x[i]) + g(x[i], 3); s = sum[i] h(x[i]); }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (np.full_like(x, 8), np.asarray(np.float32(2 * len(x)))),
    ),
    Case(
        "functions_whose_constants_overflow",
        "fn g(i: u32) -> u32 { let k = u32(77); (k << k) + i }"
        " kernel f(x: f32[n]) -> y: u32[n] { y[i] = g(u32(i)); }",
        lambda draw, n: (draw.f32(n),),
        lambda x: ((77 << 13) + np.arange(len(x), dtype=np.uint32),),
    ),
    Case(
        "broadcast_scalar_over_an_axis",
        "kernel f(x: f32[m, n], s: f32[], r: f32[m]) -> y: f32[m, n] {"
        " y[i, j] = x[i, j] * s + r[i]; }",
        lambda draw, n: (draw.f32(5, n), draw.f32(), draw.f32(5)),
        lambda x, s, r: (x * s + r[:, None],),
    ),
    Case(
        "a_let_that_two_statements_of_a_stage_use",
        "kernel f(g: f32[n], mut m: f32[n], mut v: f32[n]) {"
        " let c[i] = clamp(g[i], -2.0, 2.0); m[i] += c[i]; v[i] += c[i] * c[i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n), draw.f32(n)),
        lambda g, m, v: (m + np.clip(g, -2, 2), v + np.clip(g, -2, 2) ** 2),
    ),
    Case(
        "a_local_in_a_subscript",
        "kernel f(x: f32[v, n], ids: i32[m, n]) -> y: f32[m, n] {"
        " let q[i, j] = ids[i, j] + 1; y[i, j] = x[q[i, j], j] * f32(q[i, j]); }",
        lambda draw, n: (draw.f32(7, n), draw.i32(4, n, low=-3, high=8)),
        lambda x, ids: (
            x[np.clip(ids + 1, 0, 6), np.arange(x.shape[1])] * (ids + 1).astype("f"),
        ),
    ),
    Case(
        "a_let_over_more_than_is_written",
        "kernel f(x: f32[m, n], mut y: f32[m, 6], g: i32[m], h: i32[n]) {"
        " let t[i, j] = x[i, j] * y[g[i], h[j]]; y[i, j] = t[i, j]; }",
        lambda draw, n: (
            draw.f32(n, 8),
            draw.f32(n, 6),
            draw.i32(n, low=0, high=n - 1),
            draw.i32(8, low=0, high=5),
        ),
        lambda x, y, g, h: (x[:, :6] * y[g][:, h[:6]],),
    ),
    Case(
        "constants_that_meet_by_a_let",
        "kernel f(x: i32[n]) -> y: i32[n] { let a = 2147483647; let b = a + 1;"
        " let c = u32(40); let z = 0;"
        " y[i] = ((x[i] + b) << c) / z + abs(b) + (a + x[i]); }",
        lambda draw, n: (draw.i32(n),),
        lambda x: (
            (((x + np.int32(-(2**31))) << 8) + np.int32(-(2**31)))
            + (x + np.int32(2**31 - 1)),
        ),
    ),
    Case(
        "comparisons_side_by_side",
        "kernel f(x: f32[n], y: f32[n]) -> z: f32[n] { let t[i] = x[i] * y[i];"
        " z[i] = if select(t[i] < 1.0, t[i] > 0.5, x[i] > 0.0) { 1.0 } else { 2.0 }; }",
        lambda draw, n: (draw.f32(n), draw.f32(n)),
        lambda x, y: (
            np.where(np.where(x > 0, x * y > 0.5, x * y < 1), 1, 2).astype(np.float32),
        ),
    ),
    Case(
        "names_that_generated_code_uses",
        "const x_new: f32 = 2.0; const y_sum: f32 = 3.0;"
        "fn g(x: f32) -> f32 { x + x_new } fn g4(x: f32) -> f32 { g(x) * 3.0 }"
        "kernel f(mut x: f32[n], erf4: f32[n], parts: f32[n]) -> y: f32[n], u: f32[] {"
        " x[i] = x[i] * x_new; u = sum[lane] parts[lane];"
        " y[partial] = (x[partial] + g4(erf4[partial]) - y_sum) / 1.0"
        " + (sum[group] parts[group]) + x_new; }",
        lambda draw, n: (draw.f32(n), draw.f32(n), draw.f32(n)),
        lambda x, e, p: (x * 2, x * 2 + (e + 2) * 3 - 1 + p.sum(), np.asarray(p.sum())),
    ),
    Case(
        "an_output_named_like_a_scratch_buffer",
        "kernel f(x: f32[n]) -> parts: f32[] { parts = sum[i] x[i]; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (np.asarray(x.sum()),),
    ),
    Case(
        "many_lets_and_a_cut",
        "kernel f(mut x: f32[n], w: f32[n], mut v: f32[n]) -> y: f32[n], z: f32[n] {"
        " let a[i] = x[i] + w[i]; let b[i] = a[i] - 2.0; let c[i] = b[i] + a[i];"
        " let d[i] = c[i] - b[i]; let e[i] = d[i] + c[i]; let g[i] = e[i] - d[i];"
        " let h[i] = g[i] + a[i]; let k[i] = h[i] - c[i]; let l[i] = k[i] + h[i];"
        " v[i] += l[i]; let t[i] = v[i] + g[i];"
        " y[i] = t[i] + v[n - 1 - i]; z[i] = y[i] * t[i]; x[i] = a[i] + b[i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n), draw.f32(n)),
        lambda x, w, v: _many_lets(x + w, v),
    ),
    Case(
        "lets_of_truths",
        "kernel f(x: f32[n], ids: u32[n]) -> y: f32[n], z: f32[n], c: u32[] {"
        " let near[i] = x[i] < 2.0; let far[i] = not near[i] and x[i] > 2.0;"
        " y[i] = if near[i] or far[i] { x[i] } else { 9.0 };"
        " z[i] = if near[n - 1 - i] { x[i] } else { -9.0 };"
        " c = sum[i] u32(near[ids[i]]); }",
        lambda draw, n: (draw.f32(n), draw.u32(n, high=n - 1)),
        lambda x, ids: (
            np.where(x == 2, 9, x),
            np.where(x[::-1] < 2, x, -9),
            np.asarray((x[ids] < 2).sum()),
        ),
    ),
    Case(
        "truths_of_rows",
        "kernel f(w: f32[m, n], x: f32[n], v: f32[n, k])"
        " -> y: f32[m, n], s: f32[m, k] {"
        " let first = x[0] > 0.0; let big[i, j] = w[i, j] > 0.0;"
        " let many[i] = (sum[j] u32(big[i, j])) > 2;"
        " y[i, j] = if big[i, j] == (first or many[i]) { w[i, j] } else { 0.5 };"
        " s[i, q] = sum[j] f32(big[i, j]) * v[j, q]; }",
        lambda draw, n: (draw.f32(5, n), draw.f32(n), draw.f32(n, 3)),
        lambda w, x, v: (
            np.where((w > 0) == ((x[0] > 0) | ((w > 0).sum(1) > 2))[:, None], w, 0.5),
            (w > 0).astype(np.float32) @ v,
        ),
    ),
    Case(
        "names_that_wgsl_gives_address_spaces",
        "kernel f(workgroup: f32[n], storage: f32[n, n]) -> read_write: f32[n] {"
        " let uniform = sum[i] workgroup[i];"
        " read_write[function] = uniform + sum[i] storage[function, i] * workgroup[i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n, n)),
        lambda w, s: (w.sum() + s @ w,),
    ),
    Case(
        "names_that_other_languages_reserve",
        "kernel f(lambda: f32[n], loop: f32) -> def: f32[n] {"
        " def[while] = lambda[while] * loop; }",
        lambda draw, n: (draw.f32(n),),
        lambda x: (x * 3,),
        {"loop": 3.0},
    ),
)
