"""Products of matrices in all the forms that share a fast path, and their meaning."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.language.cases import Array, Case


def _einsum(subscripts: str, *operands: Array) -> Array:
    result: Array = np.einsum(subscripts, *operands)
    return result


def _masked(q: Array, k: Array) -> Array:
    scores = 2 * _einsum("bihd,bjhd->bhij", q, k)
    later = np.triu(np.ones(scores.shape[2:], np.bool_), 1)
    masked: Array = np.where(later, np.float32(-9), scores)
    return masked


def _nibbles(words: Array) -> Array:
    parts = np.stack(
        [(words >> np.uint32(4 * n)) & np.uint32(15) for n in range(8)], -1
    )
    nibbles: Array = parts.reshape(len(words), -1).astype(np.float32) - 8
    return nibbles


PRODUCTS = (
    Case(
        "batches_products",
        "kernel f(a: f32[b, m, k], w: f32[b, k, n]) -> c: f32[b, m, n] {"
        " c[t, i, j] = sum[p] a[t, i, p] * w[t, p, j]; }",
        lambda draw, n: (draw.f32(3, n, 5), draw.f32(3, 5, 9)),
        lambda a, w: (a @ w,),
    ),
    Case(
        "shares_an_operand_in_a_batch",
        "kernel f(a: f32[b, m, k], w: f32[n, k]) -> c: f32[b, m, n] {"
        " c[t, i, j] = sum[p] a[t, i, p] * w[j, p]; }",
        lambda draw, n: (draw.f32(2, n, 16), draw.f32(n, 16)),
        lambda a, w: (a @ w.T,),
    ),
    Case(
        "scores_heads_behind_a_mask",
        "kernel f(q: f32[b, s, h, d], k: f32[b, t, h, d]) -> c: f32[b, h, s, t] {"
        " c[n, g, i, j] = if j <= i { 2.0 * sum[p] q[n, i, g, p] * k[n, j, g, p] }"
        " else { -9.0 }; }",
        lambda draw, n: (draw.f32(2, 7, 2, 8), draw.f32(2, n, 2, 8)),
        lambda q, k: (_masked(q, k),),
    ),
    Case(
        "weighs_heads",
        "kernel f(w: f32[b, h, s, t], v: f32[b, t, h, d]) -> c: f32[b, s, h, d] {"
        " c[n, i, g, p] = sum[j] w[n, g, i, j] * v[n, j, g, p]; }",
        lambda draw, n: (draw.f32(2, 3, 5, n), draw.f32(2, n, 3, 8)),
        lambda w, v: (_einsum("bhst,bthd->bshd", w, v),),
    ),
    Case(
        "groups_heads",
        "kernel f(q: f32[h, s, d], k: f32[g, t, d]) -> c: f32[h, s, t] {"
        " c[a, i, j] = sum[p] q[a, i, p] * k[a / 2, j, p]; }",
        lambda draw, n: (draw.f32(4, n, 8), draw.f32(2, 7, 8)),
        lambda q, k: (_einsum("hsd,htd->hst", q, np.repeat(k, 2, axis=0)),),
    ),
    Case(
        "multiplies_from_the_other_side",
        "kernel f(a: f32[m, k], w: f32[k, n]) -> c: f32[n, m] {"
        " c[j, i] = sum[p] w[p, j] * a[i, p]; }",
        lambda draw, n: (draw.f32(n, 5), draw.f32(5, 9)),
        lambda a, w: ((a @ w).T,),
    ),
    Case(
        "scales_factors_on_their_way",
        "kernel f(a: f32[m, k], w: i32[k, n], s: f32[n], z: f32[k]) -> c: f32[m, n] {"
        " c[i, j] = sum[p] a[i, p] * z[p] * ((f32(w[p, j]) - 1.0) * s[j]); }",
        lambda draw, n: (draw.f32(n, 8), draw.i32(8, n), draw.f32(n), draw.f32(8)),
        lambda a, w, s, z: (((a * z) @ ((w - 1) * s)).astype(np.float32),),
    ),
    Case(
        "looks_rows_up",
        "kernel f(a: f32[m, k], table: f32[v, n], ids: u32[k]) -> c: f32[m, n] {"
        " c[i, j] = sum[p] max(a[i, p], 0.0) * table[i32(ids[p]), j]; }",
        lambda draw, n: (draw.f32(n, 16), draw.f32(5, n), draw.u32(16, high=6)),
        lambda a, table, ids: (np.maximum(a, 0) @ table[np.minimum(ids, 4)],),
    ),
    Case(
        "multiplies_by_itself",
        "kernel f(a: f32[m, k]) -> c: f32[m, m] {"
        " c[i, j] = sum[p] a[i, p] * a[j, p]; }",
        lambda draw, n: (draw.f32(n, 16),),
        lambda a: (a @ a.T,),
    ),
    Case(
        "multiplies_windows",
        "kernel f(x: f32[n, k], w: f32[k, c]) -> y: f32[n - k + 1, c] {"
        " y[i, j] = sum[p] x[i + p, p] * w[p, j]; }",
        lambda draw, n: (draw.f32(n + 4, 4), draw.f32(4, 8)),
        lambda x, w: (_einsum("ppn,pc->nc", sliding_window_view(x, len(x) - 3, 0), w),),
    ),
    Case(
        "measures_distances",
        "kernel f(a: f32[m, d], b: f32[n, d]) -> c: f32[m, n] {"
        " c[i, j] = 0.5 * sum[p] (a[i, p] - b[j, p]) * (a[i, p] - b[j, p]); }",
        lambda draw, n: (draw.f32(n, 10), draw.f32(7, 10)),
        lambda a, b: (0.5 * ((a[:, None] - b) ** 2).sum(2),),
    ),
    Case(
        "shortens_paths",
        "kernel f(a: f32[b, m, k], w: f32[k, n]) -> c: f32[b, m, n] {"
        " c[t, i, j] = min[p] (a[t, i, p] + w[p, j] - 1.0); }",
        lambda draw, n: (draw.f32(2, n, 6), draw.f32(6, n)),
        lambda a, w: ((a[..., None] + w).min(2) - 1,),
    ),
    Case(
        "multiplies_integers",
        "kernel f(a: i32[m, k], w: i32[k, n]) -> c: i32[m, n] {"
        " c[i, j] = 1 - sum[p] a[i, p] * w[p, j]; }",
        lambda draw, n: (draw.i32(n, 9, low=-(2**31)), draw.i32(9, n, low=-(2**31))),
        lambda a, w: (1 - a @ w,),
    ),
    Case(
        "multiplies_unsigned_integers",
        "kernel f(a: u32[b, m, k], w: u32[n, k], z: u32[k]) -> c: u32[b, m, n] {"
        " c[t, i, j] = sum[p] a[t, i, p] * (w[j, p] - z[p]); }",
        lambda draw, n: (
            draw.u32(2, 3, n, high=2**32 - 1),
            draw.u32(8, n, high=2**32 - 1),
            draw.u32(n),
        ),
        lambda a, w, z: (a @ (w - z).T,),
    ),
    Case(
        "counts_differing_bits",
        "kernel f(a: u32[m, d], b: u32[n, d]) -> c: f32[m, n] {"
        " c[i, j] = f32(sum[p] countOneBits(a[i, p] ^ b[j, p])); }",
        lambda draw, n: (
            draw.u32(n, 10, high=2**32 - 1),
            draw.u32(12, 10, high=2**32 - 1),
        ),
        lambda a, b: (np.bitwise_count(a[:, None] ^ b).sum(2).astype(np.float32),),
    ),
    Case(
        "shortens_paths_of_whole_steps",
        "kernel f(a: i32[m, k], w: i32[k, n]) -> c: i32[m, n] {"
        " c[i, j] = min[p] (a[i, p] + w[p, j]); }",
        lambda draw, n: (draw.i32(n, 6), draw.i32(6, n)),
        lambda a, w: ((a[..., None] + w).min(1),),
    ),
    Case(
        "converts_products_of_integers",
        "kernel f(q: i32[m, k], w: u32[n, k]) -> c: f32[m, n] {"
        " c[i, j] = sum[p] 0.5 * f32(q[i, p] * i32(w[j, p])); }",
        lambda draw, n: (draw.i32(n, 16), draw.u32(n, 16)),
        lambda q, w: (0.5 * (q @ w.astype(np.int32).T).astype(np.float32),),
    ),
    Case(
        "unpacks_words",
        "kernel f(x: f32[m, k], q: u32[n, w], s: f32[n, 2]) -> y: f32[m, n] {"
        " y[i, j] = sum[p] x[i, p] * (f32(i32((q[j, p / 8] >> (4 * u32(p % 8))) & 15)"
        " - 8) * s[j, p / 16]); }",
        lambda draw, n: (
            draw.f32(n, 32),
            draw.u32(9, 4, high=2**32 - 1),
            draw.f32(9, 2),
        ),
        lambda x, q, s: (x @ (_nibbles(q) * np.repeat(s, 16, 1)).T,),
    ),
    Case(
        "contracts_two_axes",
        "kernel f(x: f32[m, a, b], w: f32[n, a, b]) -> y: f32[m, n] {"
        " y[i, j] = sum[p, q] x[i, p, q] * w[j, p, q]; }",
        lambda draw, n: (draw.f32(n, 3, 5), draw.f32(33, 3, 5)),
        lambda x, w: (_einsum("ipq,jpq->ij", x, w),),
    ),
    Case(
        "contracts_whole_turns_of_axes_in_any_order",
        "kernel f(x: f32[a, m, b], w: f32[b, a, n]) -> y: f32[m, n] {"
        " y[i, j] = sum[p, q] x[p, i, q] * w[q, p, j] + 1.0; }",
        lambda draw, n: (draw.f32(4, 128, 8), draw.f32(8, 4, n)),
        lambda x, w: (_einsum("piq,qpj->ij", x, w) + 1,),
    ),
    Case(
        "farthest_of_two_axes",
        "kernel f(a: f32[m, h, d], b: f32[h, n, d]) -> c: f32[m, n] {"
        " c[i, j] = max[g, p] abs(a[i, g, p] - b[g, j, p]); }",
        lambda draw, n: (draw.f32(n, 3, 7), draw.f32(3, 5, 7)),
        lambda a, b: (abs(a[:, :, None] - b).max((1, 3)),),
    ),
    Case(
        "convolves_channels",
        "kernel f(x: f32[b, c, l], k: f32[o, c, s]) -> y: f32[b, o, l - s + 1] {"
        " y[n, f, t] = sum[q, u] k[f, q, u] * x[n, q, t + u]; }",
        lambda draw, n: (draw.f32(2, 6, n + 2), draw.f32(37, 6, 3)),
        lambda x, k: (_einsum("bctu,ocu->bot", sliding_window_view(x, 3, 2), k),),
    ),
)
