"""The gradients of standard kernels in NumPy, each by its own rule, not by derivation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .approx import Array, exactly
from .oracles_attention import ATTENTION
from .oracles_images import (
    conv2d_input_gradient,
    conv2d_kernel_gradient,
    padded,
    windows,
)
from .oracles_layers import (
    causal_scores_gradient,
    rotary,
    rotary_interleaved,
    standard,
)

LOWEST = -np.inf


def huber_gradient(
    prediction: Array, target: Array, dloss: Array, *, delta: float
) -> Array:
    """The difference, held to delta on both sides."""
    d = prediction - target
    result: Array = dloss * np.minimum(np.abs(d), delta) * np.sign(d)
    return result


def binary_cross_entropy_gradient(x: Array, target: Array, dloss: Array) -> Array:
    """The probability less the target, by the exponential that does not overflow."""
    e = np.exp(-np.abs(x))
    half = np.where(x > 0, 1.0, np.where(x < 0, 0.0, 0.5))
    result: Array = dloss * (half - target - e * np.sign(x) / (1 + e))
    return result


def _flat(x: Array) -> Array:
    samples, groups, channels, pixels = x.shape
    return np.reshape(x, (samples * groups, channels * pixels))


def _less_means(g: Array, d: Array, scale: Array) -> Array:
    """The gradient by what is standardized: less what changes mean and variance."""
    count = d.shape[-1]
    along = (g * d).sum(-1)[:, None]
    total = g.sum(-1)[:, None]
    dx: Array = scale * (g - along * d * scale * scale / count - total / count)
    return dx


def groupnorm_gradient(x: Array, gain: Array, dy: Array, *, eps: float) -> Array:
    """That of the rows that groups are."""
    d, scale = standard(_flat(x), eps)
    g = _flat(dy * gain[:, :, None])
    return np.reshape(_less_means(g, d, scale), x.shape)


def groupnorm_parameter_gradients(
    x: Array, dy: Array, *, eps: float
) -> tuple[Array, Array]:
    """Sums over samples and pixels."""
    d, scale = standard(_flat(x), eps)
    z = np.reshape(d * scale, x.shape)
    return (dy * z).sum((0, 3)), dy.sum((0, 3))


def _by_channel(x: Array) -> Array:
    samples, channels, pixels = x.shape
    return np.reshape(np.swapaxes(x, 0, 1), (channels, samples * pixels))


def _from_channels(rows: Array, shape: tuple[int, ...]) -> Array:
    samples, channels, pixels = shape
    return np.swapaxes(np.reshape(rows, (channels, samples, pixels)), 0, 1)


def batchnorm_training(x: Array, gain: Array, bias: Array, *, eps: float) -> Array:
    """Channels of mean 0 and variance 1, then affine."""
    d, scale = standard(_by_channel(x), eps)
    z = _from_channels(d * scale, x.shape)
    return z * gain[:, None] + bias[:, None]


def batchnorm_training_kept(
    x: Array, gain: Array, bias: Array, *, eps: float
) -> tuple[Array, Array, Array]:
    """The same, with each channel's mean and scale."""
    rows = _by_channel(x)
    _, scale = standard(rows, eps)
    mean = rows.sum(-1) / rows.shape[-1]
    return batchnorm_training(x, gain, bias, eps=eps), mean, scale[:, 0]


def batchnorm_training_gradient(
    x: Array, gain: Array, mean: Array, scale: Array, dy: Array
) -> tuple[Array, Array, Array]:
    """By the input, the gain and the bias, given the mean and the scale."""
    d, g = _by_channel(x) - mean[:, None], _by_channel(dy)
    dx = gain[:, None] * _less_means(g, d, scale[:, None])
    return _from_channels(dx, x.shape), (g * d).sum(-1) * scale, g.sum(-1)


def grouped_query_attention_gradient(
    q: Array, k: Array, v: Array, dy: Array
) -> tuple[Array, Array, Array]:
    """That of causal attention; keys and values have it from all of their queries."""
    times = q.shape[1] // k.shape[1]
    many_k, many_v = np.repeat(k, times, 1), np.repeat(v, times, 1)
    weight, dscore, scale = causal_scores_gradient(q, many_k, many_v, dy)

    def joined(x: Array) -> Array:
        """The queries of a group, one after the other."""
        batch, _, queries, features = x.shape
        return np.reshape(x, (batch, k.shape[1], times * queries, features))

    dk = scale * (np.swapaxes(joined(dscore), -1, -2) @ joined(q))
    dv = np.swapaxes(joined(weight), -1, -2) @ joined(dy)
    return scale * (dscore @ many_k), dk, dv


def rotary_gradient(cosine: Array, sine: Array, dy: Array) -> Array:
    """The rotation back."""
    return rotary(dy, cosine, -sine)


def rotary_interleaved_gradient(cosine: Array, sine: Array, dy: Array) -> Array:
    """The rotation back, of neighbours."""
    return rotary_interleaved(dy, cosine, -sine)


def conv1d_gradient(
    x: Array, k: Array, dy: Array, *, stride: int, pad: int, dilation: int
) -> tuple[Array, Array]:
    """Those of images of height 1, the padding along them alone."""
    image = np.pad(x, ((0, 0), (0, 0), (pad, pad)))[:, :, None]
    how = {"stride": stride, "pad": 0, "dilation": dilation}
    wide = conv2d_input_gradient(
        k[:, :, None], dy[:, :, None], h_len=1, w_len=image.shape[3], **how
    )
    dk = conv2d_kernel_gradient(image, dy[:, :, None], r_len=1, s_len=k.shape[2], **how)
    return wide[:, :, 0, pad : pad + x.shape[2]], dk[:, :, 0]


def conv2d_bias_gradient(dy: Array) -> Array:
    """All of a channel."""
    result: Array = dy.sum((0, 2, 3))
    return result


def _places(
    length: int, outputs: int, offset: int, stride: int
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """For each place of an axis, which window has it at an offset, and if there is one."""
    place = np.arange(length) - offset
    window = place // stride
    found = (place % stride == 0) & (window >= 0) & (window < outputs)
    return found, np.where(found, window, 0)


def _at_windows(
    x: Array, shape: tuple[int, int], offsets: tuple[int, int], stride: int
) -> tuple[NDArray[np.bool_], Array]:
    """For each pixel, the element of the window that has it at an offset."""
    (down, i), (across, j) = (
        _places(length, outputs, offset, stride)
        for length, outputs, offset in zip(shape, x.shape[2:], offsets, strict=True)
    )
    return down[:, None] & across, x[:, :, i][:, :, :, j]


def _offsets(height: int, width: int) -> Iterator[tuple[int, int]]:
    return ((u, v) for u in range(height) for v in range(width))


def _sum_of(parts: list[Array]) -> Array:
    total: Array = np.stack(parts, -1).sum(-1)
    return total


def depthwise_conv2d_gradient(
    x: Array, k: Array, dy: Array, *, stride: int, pad: int, dilation: int
) -> tuple[Array, Array]:
    """From each window to its pixels; from all windows to the kernel."""
    parts: list[Array] = []
    for u, v in _offsets(*k.shape[1:]):
        place = u * dilation - pad, v * dilation - pad
        found, taken = _at_windows(dy, x.shape[2:], place, stride)
        parts.append(np.where(found, taken * k[:, u, v][:, None, None], 0.0))
    seen = windows(padded(x, pad), k.shape[1], k.shape[2], stride, dilation)
    places = seen[:, :, : dy.shape[2], : dy.shape[3]]
    dk: Array = (places * dy[:, :, :, :, None, None]).sum((0, 2, 3))
    return _sum_of(parts), dk


def max_pool2d_gradient(
    x: Array, y: Array, dy: Array, *, size: int, stride: int, pad: int
) -> Array:
    """From each window to the pixels that are its largest, in equal parts."""
    x, y = exactly(x), exactly(y)
    seen = windows(padded(x, pad, LOWEST), size, size, stride)
    seen = seen[:, :, : y.shape[2], : y.shape[3]]
    ties = (seen == y[..., None, None]).sum((4, 5))
    share = dy / np.maximum(ties, 1)
    parts: list[Array] = []
    for u, v in _offsets(size, size):
        found, top = _at_windows(y, x.shape[2:], (u - pad, v - pad), stride)
        _, taken = _at_windows(share, x.shape[2:], (u - pad, v - pad), stride)
        parts.append(np.where(found & (x == top), taken, 0.0))
    return _sum_of(parts)


def avg_pool2d_gradient(
    dy: Array, *, h_len: int, w_len: int, size: int, stride: int
) -> Array:
    """From each window to its pixels."""
    parts: list[Array] = []
    for offsets in _offsets(size, size):
        found, taken = _at_windows(dy, (h_len, w_len), offsets, stride)
        parts.append(np.where(found, taken, 0.0))
    return _sum_of(parts) / (size * size)


GRADIENTS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "loss": {
        "huber_gradient": huber_gradient,
        "binary_cross_entropy_gradient": binary_cross_entropy_gradient,
    },
    "norm": {
        "groupnorm_gradient": groupnorm_gradient,
        "groupnorm_parameter_gradients": groupnorm_parameter_gradients,
        "batchnorm_training": batchnorm_training,
        "batchnorm_training_kept": batchnorm_training_kept,
        "batchnorm_training_gradient": batchnorm_training_gradient,
    },
    "attention": {
        **ATTENTION,
        "grouped_query_attention_gradient": grouped_query_attention_gradient,
        "rotary_gradient": rotary_gradient,
        "rotary_interleaved_gradient": rotary_interleaved_gradient,
    },
    "conv": {
        "conv1d_gradient": conv1d_gradient,
        "conv2d_bias_gradient": conv2d_bias_gradient,
        "depthwise_conv2d_gradient": depthwise_conv2d_gradient,
    },
    "image": {
        "max_pool2d_gradient": max_pool2d_gradient,
        "avg_pool2d_gradient": avg_pool2d_gradient,
    },
}
"""The oracle of each kernel, by module and name."""
