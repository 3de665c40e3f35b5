"""What the layers of a decoder compute, in NumPy: positions before heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .approx import Array
from .oracles_layers import grouped_query_attention
from .oracles_layout import embedding

Numbers = NDArray[np.uint32]


def embedding_part(x: Array, table: Array, ids: Numbers, *, first: int) -> Array:
    """Rows by number, where the part has them."""
    rows = ids.astype(np.int64) - first
    inside = (rows >= 0) & (rows < table.shape[0])
    part = table[np.where(inside, rows, 0)]
    return np.where(inside[:, None], part, x)


def _normalized(x: Array, gain: Array, eps: float) -> Array:
    mean_square: Array = (x * x).sum(-1)[..., None] / x.shape[-1]
    return x / np.sqrt(mean_square + eps) * gain


def norm_linear(x: Array, gain: Array, w: Array, *, eps: float) -> Array:
    """A product of normalized rows."""
    return _normalized(x, gain, eps) @ w.T


def norm_gated(x: Array, gain: Array, gate: Array, up: Array, *, eps: float) -> Array:
    """Two products of normalized rows, one of which opens the other."""
    rows = _normalized(x, gain, eps)
    opened = rows @ gate.T
    result: Array = opened / (1 + np.exp(-opened)) * (rows @ up.T)
    return result


def linear_add(x: Array, h: Array, w: Array) -> Array:
    """A product, added."""
    result: Array = x + h @ w.T
    return result


def _some(x: Array, first: int, heads: int) -> Array:
    return x[:, first : first + heads]


def _turned(x: Array, cosine: Array, sine: Array, at: Numbers) -> Array:
    rows = slice(int(at), int(at) + x.shape[0])
    half: int = x.shape[-1] // 2
    other = np.concatenate([x[..., half:], x[..., :half]], -1)
    return x * cosine[rows, None] + other * sine[rows, None]


def rotary_heads(
    x: Array, cosine: Array, sine: Array, at: Numbers, *, first: int, heads: int
) -> Array:
    """Both halves of each head with each other."""
    return _turned(_some(x, first, heads), cosine, sine, at)


def norm_rotary_heads(
    x: Array,
    gain: Array,
    cosine: Array,
    sine: Array,
    at: Numbers,
    *,
    first: int,
    heads: int,
    eps: float,
) -> Array:
    """The same, of normalized heads."""
    return _turned(_normalized(_some(x, first, heads), gain, eps), cosine, sine, at)


def keep_heads(
    x: Array,
    keys: Array,
    values: Array,
    cosine: Array,
    sine: Array,
    at: Numbers,
    *,
    first: int,
) -> tuple[Array, Array]:
    """Turned heads, and those behind them, in the rows from `at` on."""
    count = keys.shape[1]
    turned = _turned(_some(x, first, count), cosine, sine, at)
    return _kept(x, keys, values, at, first, turned)


def norm_keep_heads(
    x: Array,
    keys: Array,
    values: Array,
    gain: Array,
    cosine: Array,
    sine: Array,
    at: Numbers,
    *,
    first: int,
    eps: float,
) -> tuple[Array, Array]:
    """The same, of normalized keys."""
    own = _normalized(_some(x, first, keys.shape[1]), gain, eps)
    return _kept(x, keys, values, at, first, _turned(own, cosine, sine, at))


def _kept(
    x: Array, keys: Array, values: Array, at: Numbers, first: int, turned: Array
) -> tuple[Array, Array]:
    begin, count = int(at), keys.shape[1]
    end = begin + x.shape[0]
    taken = _some(x, first + count, count)
    return (
        np.concatenate([keys[:begin], turned, keys[end:]], 0),
        np.concatenate([values[:begin], taken, values[end:]], 0),
    )


def advance(at: Numbers, *, rows: int) -> Numbers:
    """A sum."""
    return at + rows


def decode_attention(q: Array, k: Array, v: Array, at: Numbers) -> Array:
    """Attention over the rows up to a position."""
    end = int(at) + 1
    result: Array = cached_attention(q[None], k[:end], v[:end])[0]
    return result


def cached_attention(q: Array, k: Array, v: Array) -> Array:
    """Attention of one batch, heads behind positions."""
    q, k, v = (np.swapaxes(each, 0, 1)[None] for each in (q, k, v))
    return np.swapaxes(grouped_query_attention(q, k, v)[0], 0, 1)


def linear_blocks(x: Array, w: NDArray[Any], scale: Array) -> Array:
    """A product with integers, each times the scale of its block of 32."""
    places = [p // 32 for p in range(w.shape[1])]
    result: Array = x @ (scale[:, places] * w.astype(np.float64)).T
    return result


def linear_less_zero(
    x: Array, w: NDArray[Any], zero: NDArray[Any], scale: Array
) -> Array:
    """The same, less a zero point for each block."""
    places = [p // 32 for p in range(w.shape[1])]
    return linear_blocks(x, w.astype(np.int64) - zero[:, places], scale)


def norm_linear_blocks(
    x: Array, gain: Array, w: Numbers, scale: Array, *, eps: float
) -> Array:
    """A product of normalized rows."""
    return linear_blocks(_normalized(x, gain, eps), w, scale)


def linear_add_blocks(x: Array, h: Array, w: Numbers, scale: Array) -> Array:
    """A product, added."""
    result: Array = x + linear_blocks(h, w, scale)
    return result


def gate_halves(x: Array) -> Array:
    """The first half of each row opens the second."""
    half: int = x.shape[-1] // 2
    opened = x[:, :half]
    result: Array = opened / (1 + np.exp(-opened)) * x[:, half : 2 * half]
    return result


DECODER: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "decoder": {
        "embedding_half": embedding,
        "embedding_part": embedding_part,
        "embedding_part_half": embedding_part,
        "norm_linear_half": norm_linear,
        "norm_gated_half": norm_gated,
        "linear_add_half": linear_add,
        "rotary_heads": rotary_heads,
        "norm_rotary_heads": norm_rotary_heads,
        "keep_heads": keep_heads,
        "norm_keep_heads": norm_keep_heads,
        "advance": advance,
        "cached_attention": cached_attention,
        "decode_attention": decode_attention,
    },
    "quantized": {
        "linear_i4": linear_blocks,
        "linear_i8": linear_blocks,
        "linear_u4": linear_less_zero,
        "norm_linear_i4": norm_linear_blocks,
        "norm_linear_i8": norm_linear_blocks,
        "gate_halves": gate_halves,
        "linear_add_i4": linear_add_blocks,
        "linear_add_i8": linear_add_blocks,
    },
}
