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


def linear_add(x: Array, h: Array, w: Array) -> Array:
    """A product, added."""
    result: Array = x + h @ w.T
    return result


def _turned(x: Array, angles: Array, at: Numbers) -> Array:
    cosine, sine = angles[:, int(at) : int(at) + x.shape[0], None]
    half: int = x.shape[-1] // 2
    other = np.concatenate([x[..., half:], x[..., :half]], -1)
    result: Array = x * cosine + other * sine
    return result


def turn_heads(
    x: Array,
    queries: Array,
    keys: Array,
    values: Array,
    angles: Array,
    at: Numbers,
) -> tuple[Array, Array, Array]:
    """Both halves of each head with each other; keys and values in the rows from `at` on."""
    h, r = queries.shape[1], keys.shape[1]
    own, new = _turned(x[:, :h], angles, at), _turned(x[:, h : h + r], angles, at)
    return own, _kept(keys, new, at), _kept(values, x[:, h + r :], at)


def norm_turn_heads(
    x: Array,
    queries: Array,
    keys: Array,
    values: Array,
    gain: Array,
    angles: Array,
    at: Numbers,
    *,
    eps: float,
) -> tuple[Array, Array, Array]:
    """The same, of normalized heads."""
    h, r = queries.shape[1], keys.shape[1]
    own = _normalized(x[:, :h], gain[0], eps)
    new = _normalized(x[:, h : h + r], gain[1], eps)
    heads = np.concatenate([own, new, x[:, h + r :]], 1)
    return turn_heads(heads, queries, keys, values, angles, at)


def _kept(cache: Array, new: Array, at: Numbers) -> Array:
    begin, end = int(at), int(at) + new.shape[0]
    return np.concatenate([cache[:begin], new, cache[end:]], 0)


def advance(at: Numbers, *, rows: int) -> Numbers:
    """A sum."""
    return at + rows


def cached_attention(q: Array, k: Array, v: Array, at: Numbers) -> Array:
    """Attention of one batch, heads behind positions, over the rows of queries and before."""
    end = int(at) + q.shape[0]
    q, k, v = (np.swapaxes(each, 0, 1)[None] for each in (q, k[:end], v[:end]))
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
    opened = x[:, 0]
    result: Array = opened / (1 + np.exp(-opened)) * x[:, 1]
    return result


def gated_linear_add(x: Array, h: Array, w: Array) -> Array:
    """A product of gated rows, added."""
    return linear_add(x, gate_halves(h), w)


def gated_linear_add_blocks(x: Array, h: Array, w: Numbers, scale: Array) -> Array:
    """The same, with integers."""
    return linear_add_blocks(x, gate_halves(h), w, scale)


DECODER: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "decoder": {
        "embedding_half": embedding,
        "embedding_part": embedding_part,
        "embedding_part_half": embedding_part,
        "norm_linear_half": norm_linear,
        "linear_add_half": linear_add,
        "gate_halves": gate_halves,
        "gated_linear_add_half": gated_linear_add,
        "turn_heads": turn_heads,
        "norm_turn_heads": norm_turn_heads,
        "advance": advance,
        "cached_attention": cached_attention,
    },
    "quantized": {
        "linear_i4": linear_blocks,
        "linear_i8": linear_blocks,
        "linear_u4": linear_less_zero,
        "norm_linear_i4": norm_linear_blocks,
        "norm_linear_i8": norm_linear_blocks,
        "linear_add_i4": linear_add_blocks,
        "linear_add_i8": linear_add_blocks,
        "gated_linear_add_i4": gated_linear_add_blocks,
        "gated_linear_add_i8": gated_linear_add_blocks,
    },
}
