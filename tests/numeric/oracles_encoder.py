"""What the layers of an encoder compute, in NumPy: texts, positions, heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .approx import Array
from .functions import erf
from .oracles_layers import LOWEST, layernorm, softmax

Numbers = NDArray[np.uint32]


def embed_text(ids: Numbers, words: Array, places: Array, kinds: Array) -> Array:
    """Three rows, added; a number past the end is the last one's."""
    rows = np.minimum(ids.astype(np.int64), words.shape[0] - 1)
    result: Array = words[rows] + places[: ids.shape[1]] + kinds[0]
    return result


def add_layernorm(x: Array, h: Array, gain: Array, bias: Array, *, eps: float) -> Array:
    """A sum, normalized."""
    return layernorm(x + h, gain, bias, eps=eps)


def linear_gelu(x: Array, w: Array, bias: Array) -> Array:
    """A product with its bias, times the normal distribution function."""
    z = x @ w.T + bias
    return 0.5 * z * (1 + erf(z * math.sqrt(0.5)))


def _before(count: Numbers, length: int) -> Any:
    """Which of the positions are a text's own."""
    return np.arange(length)[None] < count[:, None]


def padded_attention(q: Array, k: Array, v: Array, count: Numbers) -> Array:
    """The values' means over each text's own keys."""
    q, k, v = (np.swapaxes(each, 1, 2) for each in (q, k, v))
    inside = _before(count, q.shape[2])
    score = 1 / math.sqrt(q.shape[-1]) * (q @ np.swapaxes(k, -1, -2))
    weight = softmax(np.where(inside[:, None, None], score, LOWEST))
    return np.swapaxes(weight @ v, 1, 2)


def mean_unit(x: Array, count: Numbers) -> Array:
    """Means over each text's own positions, of length 1."""
    inside = _before(count, x.shape[1])[..., None]
    mean = np.swapaxes(np.where(inside, x, 0.0), 1, 2).sum(-1) / count[:, None]
    result: Array = mean / np.sqrt((mean * mean).sum(-1)[:, None])
    return result


ENCODER: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "encoder": {
        "embed_text": embed_text,
        "add_layernorm": add_layernorm,
        "linear_gelu": linear_gelu,
        "padded_attention": padded_attention,
        "mean_unit": mean_unit,
    },
}
