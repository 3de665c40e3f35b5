"""Attention that keeps what its gradients need, and those gradients, in NumPy.

FlashAttention-2 (Dao, 2023), section 2.3, equations of the backward pass: of kept numbers
of rows, whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .approx import Array
from .oracles_layers import scores_seen, shifted


def _repeated(x: Array, heads: int) -> Array:
    """Each head of keys, or of values, as often as it is used."""
    return np.repeat(x, heads // max(x.shape[1], 1), 1)


def _kept(q: Array, k: Array, v: Array, *, causal: bool) -> tuple[Array, Array, Array]:
    score, _ = scores_seen(q, _repeated(k, q.shape[1]), causal=causal)
    less, total = shifted(score)
    y: Array = (np.exp(less) / total[..., None]) @ _repeated(v, q.shape[1])
    return y, score.max(-1, initial=-np.inf), total


def _backward(given: tuple[Array, ...], *, causal: bool) -> tuple[Array, Array, Array]:
    q, k, v, y, top, total, dy = given
    heads, groups = q.shape[1], k.shape[1]
    score, scale = scores_seen(q, _repeated(k, heads), causal=causal)
    weight = np.exp(score - top[..., None]) / total[..., None]
    dweight = dy @ np.swapaxes(_repeated(v, heads), -1, -2)
    dscore = weight * (dweight - (dy * y).sum(-1)[..., None])

    def joined(x: Array) -> Array:
        """The queries of a group, one after the other."""
        batch, _, queries, features = x.shape
        return np.reshape(
            x, (batch, groups, heads // max(groups, 1) * queries, features)
        )

    dk = scale * (np.swapaxes(joined(dscore), -1, -2) @ joined(q))
    dv = np.swapaxes(joined(weight), -1, -2) @ joined(dy)
    return scale * (dscore @ _repeated(k, heads)), dk, dv


def attention_kept(q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
    """The output, and each row's largest score and total."""
    return _kept(q, k, v, causal=False)


def causal_attention_kept(q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
    """The same, of the keys that are seen."""
    return _kept(q, k, v, causal=True)


def attention_backward(*given: Array) -> tuple[Array, Array, Array]:
    """By the queries, the keys and the values."""
    return _backward(given, causal=False)


def causal_attention_backward(*given: Array) -> tuple[Array, Array, Array]:
    """The same, of the keys that are seen."""
    return _backward(given, causal=True)


ATTENTION: Mapping[str, Callable[..., Any]] = {
    "attention_kept": attention_kept,
    "causal_attention_kept": causal_attention_kept,
    "grouped_query_attention_kept": causal_attention_kept,
    "attention_backward": attention_backward,
    "causal_attention_backward": causal_attention_backward,
    "grouped_query_attention_backward": causal_attention_backward,
}
"""The oracle of each kernel, by name."""
