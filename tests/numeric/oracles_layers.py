"""What the standard layers compute: softmax, norms, attention, losses, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .approx import Array

Labels: TypeAlias = NDArray[np.uint32]
LOWEST = -float(np.finfo(np.float32).max)


def shifted(x: Array) -> tuple[Array, Array]:
    """Each row less its largest element, and the sum of its exponentials."""
    less = x - x.max(-1, initial=-np.inf)[..., None]
    return less, np.exp(less).sum(-1)


def softmax(x: Array) -> Array:
    """Exponentials, normalized by row."""
    less, total = shifted(x)
    return np.exp(less) / total[..., None]


def log_softmax(x: Array) -> Array:
    """The logarithm of softmax."""
    less, total = shifted(x)
    return less - np.log(total)[..., None]


def logsumexp(x: Array) -> Array:
    """The logarithm of the sum of exponentials."""
    top = x.max(-1, initial=-np.inf)
    result: Array = top + np.log(np.exp(x - top[:, None]).sum(-1))
    return result


def softmax_gradient(y: Array, dy: Array) -> Array:
    """By the Jacobian diag(y) - y y^T."""
    result: Array = y * (dy - (y * dy).sum(-1)[:, None])
    return result


def log_softmax_gradient(y: Array, dy: Array) -> Array:
    """By the Jacobian 1 - (softmax, repeated)."""
    result: Array = dy - np.exp(y) * dy.sum(-1)[:, None]
    return result


def _classes(logits: Array, labels: Labels) -> tuple[NDArray[np.intp], Labels]:
    rows: int = logits.shape[0]
    last = np.full(rows, max(logits.shape[1] - 1, 0), np.uint32)
    classes: Labels = np.minimum(labels, last)
    return np.arange(rows), classes


def cross_entropy(logits: Array, labels: Labels) -> Array:
    """Minus the logarithm of the softmax at the label."""
    less, total = shifted(logits)
    return np.log(total) - less[_classes(logits, labels)]


def mean_cross_entropy(logits: Array, labels: Labels) -> Array:
    """The mean of it; 0 of nothing."""
    loss: Array = cross_entropy(logits, labels).sum(-1) / max(logits.shape[0], 1)
    return loss


def cross_entropy_gradient(logits: Array, labels: Labels, dloss: Array) -> Array:
    """Softmax less the one-hot label, times the loss' of the row."""
    _, classes = _classes(logits, labels)
    columns: int = logits.shape[1]
    one_hot = np.equal.outer(classes, np.arange(columns))
    return dloss[:, None] * (softmax(logits) - one_hot)


def mean_cross_entropy_gradient(logits: Array, labels: Labels, dloss: Array) -> Array:
    """The rows' gradients, each with its part of the loss'."""
    rows: int = logits.shape[0]
    each = dloss / max(rows, 1) * np.ones(rows)
    return cross_entropy_gradient(logits, labels, each)


def mean_squared_error(prediction: Array, target: Array) -> Array:
    """The mean square of the difference; 0 of nothing."""
    d = prediction - target
    loss: Array = (d * d).sum(-1) / max(d.shape[0], 1)
    return loss


def mean_squared_error_gradient(
    prediction: Array, target: Array, dloss: Array
) -> Array:
    """Twice the difference, by the number of elements, times the loss's gradient."""
    result: Array = dloss * 2 * (prediction - target) / max(prediction.shape[0], 1)
    return result


def huber(prediction: Array, target: Array, *, delta: float) -> Array:
    """A parabola to delta, and its tangent from there on."""
    d = np.abs(prediction - target)
    inner = np.minimum(d, delta)
    return inner * (d - 0.5 * inner)


def binary_cross_entropy(x: Array, target: Array) -> Array:
    """From logits: -target log p - (1 - target) log(1 - p), with p = 1 / (1 + e^-x)."""
    result: Array = np.maximum(x, 0) - x * target + np.log(1 + np.exp(-np.abs(x)))
    return result


def _mean(x: Array) -> Array:
    mean: Array = x.sum(-1) / x.shape[-1]
    return mean[:, None]


def standard(x: Array, eps: float) -> tuple[Array, Array]:
    """Rows without their means, and the scale of each."""
    d = x - _mean(x)
    return d, 1 / np.sqrt(_mean(d * d) + eps)


def layernorm(x: Array, gain: Array, bias: Array, *, eps: float) -> Array:
    """Rows of mean 0 and variance 1, then affine."""
    d, scale = standard(x, eps)
    return d * scale * gain + bias


def layernorm_gradient(x: Array, gain: Array, dy: Array, *, eps: float) -> Array:
    """Less what changes the mean, less what changes the variance."""
    d, scale = standard(x, eps)
    z, g = d * scale, dy * gain
    return scale * (g - _mean(g) - z * _mean(g * z))


def layernorm_parameter_gradients(
    x: Array, dy: Array, *, eps: float
) -> tuple[Array, Array]:
    """Sums over the rows."""
    d, scale = standard(x, eps)
    return (dy * d * scale).sum(0), dy.sum(0)


def rmsnorm(x: Array, gain: Array, *, eps: float) -> Array:
    """Rows of mean square 1, then scaled."""
    return x / np.sqrt(_mean(x * x) + eps) * gain


def rmsnorm_gradient(x: Array, gain: Array, dy: Array, *, eps: float) -> Array:
    """Less what changes the mean square."""
    scale = 1 / np.sqrt(_mean(x * x) + eps)
    return scale * (dy * gain - x * scale * scale * _mean(dy * gain * x))


def rmsnorm_gain_gradient(x: Array, dy: Array, *, eps: float) -> Array:
    """A sum over the rows."""
    scale = 1 / np.sqrt(_mean(x * x) + eps)
    result: Array = (dy * x * scale).sum(0)
    return result


def groupnorm(x: Array, gain: Array, bias: Array, *, eps: float) -> Array:
    """Groups of mean 0 and variance 1, then affine by channel."""
    samples, groups, channels, pixels = x.shape
    flat = np.reshape(x, (samples * groups, channels * pixels))
    d, scale = standard(flat, eps)
    z = np.reshape(d * scale, x.shape)
    return z * gain[:, :, None] + bias[:, :, None]


def batchnorm(
    x: Array, mean: Array, variance: Array, gain: Array, bias: Array, *, eps: float
) -> Array:
    """Affine by channel, by given statistics."""
    deviation = np.sqrt(variance + eps)[:, None]
    return (x - mean[:, None]) / deviation * gain[:, None] + bias[:, None]


def batch_statistics(x: Array) -> tuple[Array, Array]:
    """The mean and variance of each channel; 0 of nothing."""
    count = max(x.shape[0] * x.shape[2], 1)
    mean = x.sum((0, 2)) / count
    d = x - mean[:, None]
    return mean, (d * d).sum((0, 2)) / count


def _scale(q: Array) -> float:
    return 1 / math.sqrt(max(q.shape[-1], 1))


def _seen(q: Array, k: Array) -> NDArray[np.bool_]:
    """No key that is further from the last one than the query is."""
    queries, keys = q.shape[2], k.shape[2]
    return np.tri(queries, keys, keys - queries, dtype=np.bool_)


def scores_seen(q: Array, k: Array, *, causal: bool) -> tuple[Array, float]:
    """The scores, those of keys that are not seen lowest, and their scale."""
    score = _scale(q) * (q @ np.swapaxes(k, -1, -2))
    return np.where(_seen(q, k), score, LOWEST) if causal else score, _scale(q)


def _weights(q: Array, k: Array, *, causal: bool = False) -> Array:
    return softmax(scores_seen(q, k, causal=causal)[0])


def attention(q: Array, k: Array, v: Array) -> Array:
    """The values' means, weighted by the softmax of the scores."""
    return _weights(q, k) @ v


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    """The same, of the keys that are seen."""
    return _weights(q, k, causal=True) @ v


def grouped_query_attention(q: Array, k: Array, v: Array) -> Array:
    """Each head of keys, and of values, as often as it is used."""
    times = q.shape[1] // k.shape[1]
    return causal_attention(q, np.repeat(k, times, 1), np.repeat(v, times, 1))


def _scores_gradient(v: Array, dy: Array, weight: Array) -> Array:
    """By the Jacobian of softmax."""
    dweight = dy @ np.swapaxes(v, -1, -2)
    dscore: Array = weight * (dweight - (weight * dweight).sum(-1)[..., None])
    return dscore


def causal_scores_gradient(
    q: Array, k: Array, v: Array, dy: Array
) -> tuple[Array, Array, float]:
    """The weights of causal attention, the scores' gradient, and their scale."""
    weight = _weights(q, k, causal=True)
    return weight, _scores_gradient(v, dy, weight), _scale(q)


def _attention_gradient(
    q: Array, k: Array, v: Array, dy: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """By the product rule."""
    dscore = _scores_gradient(v, dy, weight)
    dq = _scale(q) * (dscore @ k)
    dk = _scale(q) * (np.swapaxes(dscore, -1, -2) @ q)
    return dq, dk, np.swapaxes(weight, -1, -2) @ dy


def attention_gradient(
    q: Array, k: Array, v: Array, dy: Array
) -> tuple[Array, Array, Array]:
    """By the queries, the keys and the values."""
    return _attention_gradient(q, k, v, dy, _weights(q, k))


def causal_attention_gradient(
    q: Array, k: Array, v: Array, dy: Array
) -> tuple[Array, Array, Array]:
    """The same, of the keys that are seen."""
    return _attention_gradient(q, k, v, dy, _weights(q, k, causal=True))


def rotary(x: Array, cosine: Array, sine: Array) -> Array:
    """The first half of the rotated features with the second."""
    half: int = cosine.shape[1]
    a, b = x[..., :half], x[..., half : 2 * half]
    turned = [a * cosine - b * sine, b * cosine + a * sine, x[..., 2 * half :]]
    return np.concatenate(turned, -1)


def rotary_interleaved(x: Array, cosine: Array, sine: Array) -> Array:
    """Each feature of even number with the next."""
    half: int = cosine.shape[1]
    a, b = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    turned = np.stack([a * cosine - b * sine, b * cosine + a * sine], -1)
    pairs = np.reshape(turned, (*x.shape[:-1], 2 * half))
    return np.concatenate([pairs, x[..., 2 * half :]], -1)


LAYERS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "softmax": {
        "softmax": softmax,
        "softmax_gradient": softmax_gradient,
        "log_softmax": log_softmax,
        "log_softmax_gradient": log_softmax_gradient,
        "logsumexp": logsumexp,
    },
    "loss": {
        "cross_entropy": cross_entropy,
        "cross_entropy_gradient": cross_entropy_gradient,
        "mean_cross_entropy": mean_cross_entropy,
        "mean_cross_entropy_gradient": mean_cross_entropy_gradient,
        "mean_squared_error": mean_squared_error,
        "mean_squared_error_gradient": mean_squared_error_gradient,
        "huber": huber,
        "binary_cross_entropy": binary_cross_entropy,
    },
    "norm": {
        "layernorm": layernorm,
        "layernorm_gradient": layernorm_gradient,
        "layernorm_parameter_gradients": layernorm_parameter_gradients,
        "rmsnorm": rmsnorm,
        "rmsnorm_gradient": rmsnorm_gradient,
        "rmsnorm_gain_gradient": rmsnorm_gain_gradient,
        "groupnorm": groupnorm,
        "batchnorm": batchnorm,
        "batch_statistics": batch_statistics,
    },
    "attention": {
        "attention": attention,
        "causal_attention": causal_attention,
        "grouped_query_attention": grouped_query_attention,
        "attention_gradient": attention_gradient,
        "causal_attention_gradient": causal_attention_gradient,
        "rotary": rotary,
        "rotary_interleaved": rotary_interleaved,
    },
}
"""The oracle of each kernel, by module and name."""
