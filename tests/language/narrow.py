"""Tensors of integers of 8 and 4 bits, read in every way, and their meaning.

The ends of each type are among their elements, so that a sign that is lost shows.
"""

from __future__ import annotations

import numpy as np

from tests.language.cases import Array, Case, Inputs

_ENDS = {"u8": (0, 255), "i8": (-128, 127), "u4": (0, 15), "i4": (-8, 7)}


def _drawn(draw: Inputs, type_: str, *shape: int) -> Array:
    low, high = _ENDS[type_]
    kept = np.uint8 if low == 0 else np.int8
    return draw.i32(*shape, low=low, high=high).astype(kept)


def _wide(x: Array) -> Array:
    return x.astype(np.int32)


def _scaled(x: Array, w: Array, scale: Array) -> Array:
    blocks = np.repeat(scale, 32, axis=1)[:, : w.shape[1]]
    result: Array = x @ (blocks * (w.astype(np.float32) - 8)).T
    return result


NARROW = (
    Case(
        "reads_every_narrow_type",
        "kernel f(a: u8[m, n], b: i8[m, n], c: u4[m, n], d: i4[m, n]) -> y: i32[m, n] {"
        " y[i, j] = 1000 * (i32(a[i, j]) + b[i, j]) + 20 * i32(c[i, j]) + d[i, j]; }",
        lambda draw, n: tuple(_drawn(draw, t, 3, n) for t in ("u8", "i8", "u4", "i4")),
        lambda a, b, c, d: (1000 * (_wide(a) + _wide(b)) + 20 * _wide(c) + _wide(d),),
    ),
    Case(
        "reads_nibbles_anywhere",
        "kernel f(w: u4[n], at: i32[n]) -> y: u32[n] {"
        " y[i] = w[at[i]] + 16 * w[n - 1 - i]; }",
        lambda draw, n: (_drawn(draw, "u4", n), draw.i32(n, low=0, high=n - 1)),
        lambda w, at: ((w[at] + 16 * w[::-1].astype(np.uint32)).astype(np.uint32),),
    ),
    Case(
        "multiplies_by_blocks_of_nibbles",
        "kernel f(x: f32[m, n], w: u4[o, n], scale: f16[o, (n + 31) / 32]) -> y: f32[m, o]"
        " { y[i, j] = sum[p] x[i, p] * (scale[j, p / 32] * (f32(w[j, p]) - 8.0)); }",
        lambda draw, n: (
            draw.f32(2, n),
            _drawn(draw, "u4", 5, n),
            draw.f32(5, -(-n // 32)).astype(np.float16),
        ),
        lambda x, w, scale: (_scaled(x, w, scale.astype(np.float32)),),
    ),
    Case(
        "multiplies_bytes_exactly",
        "kernel f(a: i8[m, n], b: i4[n, o]) -> y: i32[m, o]"
        " { y[i, j] = sum[p] a[i, p] * b[p, j]; }",
        lambda draw, n: (_drawn(draw, "i8", 3, n), _drawn(draw, "i4", n, 8)),
        lambda a, b: (_wide(a) @ _wide(b),),
    ),
    Case(
        "finds_the_greatest_byte",
        "kernel f(a: u8[m, n]) -> y: u32[m], at: i32[m]"
        " { y[i] = max[j] a[i, j]; at[i] = argmax[j] a[i, j]; }",
        lambda draw, n: (_drawn(draw, "u8", 3, n),),
        lambda a: (
            a.max(axis=1).astype(np.uint32),
            a.argmax(axis=1).astype(np.int32),
        ),
    ),
)
