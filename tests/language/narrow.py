"""Tensors of integers of 8 and 4 bits, read and written in every way, and their meaning.

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


def _kept(x: Array, type_: str) -> Array:
    """What a type keeps of integers: the lower bits."""
    bits, kept = int(type_[1:]), np.uint8 if type_[0] == "u" else np.int8
    low = x.astype(np.int64) & ((1 << bits) - 1)
    if type_[0] == "i":
        low = low - ((low >> (bits - 1)) << bits)
    return low.astype(kept)


def _quantized(x: Array) -> tuple[Array, Array]:
    """The integers of blocks of 32, and their scales."""
    rows, columns = x.shape
    padded = np.pad(x, ((0, 0), (0, -columns % 32))).reshape(rows, -1, 32)
    scale = (np.abs(padded).max(axis=2) / np.float32(7)).astype(np.float32)
    codes = np.round(padded / np.where(scale == 0, 1, scale)[:, :, None])
    return codes.reshape(rows, -1)[:, :columns].astype(np.int8), scale


NARROW = (
    Case(
        "writes_every_narrow_type",
        "kernel f(x: i32[m, n]) -> a: u8[m, n], b: i8[m, n], c: u4[m, n], d: i4[m, n] {"
        " a[i, j] = u32(x[i, j]); b[i, j] = x[i, n - 1 - j];"
        " c[i, j] = u32(x[i, j] + 1); d[i, j] = x[i, j]; }",
        lambda draw, n: (draw.i32(3, n, low=-1000, high=1000),),
        lambda x: (
            _kept(x, "u8"),
            _kept(x[:, ::-1], "i8"),
            _kept(x + 1, "u4"),
            _kept(x, "i4"),
        ),
    ),
    Case(
        "reads_what_it_packed",
        "kernel f(x: i32[n]) -> y: i4[n], z: i32[n], t: i8[n] {"
        " y[i] = 3 * x[i]; z[i] = y[i] + 1; t[i] = 100 * y[n - 1 - i] + y[i]; }",
        lambda draw, n: (draw.i32(n, low=-9, high=9),),
        lambda x: (
            _kept(3 * x, "i4"),
            _wide(_kept(3 * x, "i4")) + 1,
            _kept(
                100 * _wide(_kept(3 * x, "i4"))[::-1] + _kept(3 * x, "i4"),
                "i8",
            ),
        ),
    ),
    Case(
        "packs_a_product",
        "kernel f(a: i8[m, n], b: i8[o, n]) -> y: i8[m, o], top: u8[m] {"
        " y[i, j] = clamp((sum[p] a[i, p] * b[j, p]) / 64, -128, 127);"
        " top[i] = u32(max[p] abs(a[i, p])); }",
        lambda draw, n: (_drawn(draw, "i8", 3, n), _drawn(draw, "i8", 9, n)),
        lambda a, b: (
            np.trunc(_wide(a) @ _wide(b).T / 64).clip(-128, 127).astype(np.int8),
            np.abs(_wide(a)).max(axis=1).astype(np.uint8),
        ),
    ),
    Case(
        "quantizes_blocks",
        "kernel f(x: f32[m, n]) -> q: i4[m, n], scale: f32[m, (n + 31) / 32] {"
        " scale[i, b] = (max[p when p / 32 == b] abs(x[i, p])) / 7.0;"
        " q[i, p] = i32(round(x[i, p]"
        " / if scale[i, p / 32] == 0.0 { 1.0 } else { scale[i, p / 32] })); }",
        # Sevenths of 7 are whole: no quotient is near a half.
        lambda draw, n: (7 * draw.i32(3, n, low=-1, high=1).astype(np.float32),),
        _quantized,
    ),
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
