"""What the standard kernels of images compute: windows, seen by NumPy's strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .approx import Array

LOWEST = -np.inf


def padded(x: Array, edge: int, value: float = 0.0) -> Array:
    """The images with `value` around them."""
    around = ((0, 0), (0, 0), (edge, edge), (edge, edge))
    real = np.pad(np.ones(x.shape, np.bool_), around)
    return np.where(real, np.pad(x, around), value)


def windows(
    x: Array, height: int, width: int, stride: int = 1, dilation: int = 1
) -> Array:
    """The windows by their places: `[b, c, i, j, u, v]`."""
    extent = (dilation * (height - 1) + 1, dilation * (width - 1) + 1)
    view: Array = sliding_window_view(x, extent, (2, 3))
    return view[:, :, ::stride, ::stride, ::dilation, ::dilation]


def conv2d(
    x: Array, k: Array, *, stride: int = 1, pad: int = 0, dilation: int = 1
) -> Array:
    """Windows times kernels, by output channel."""
    seen = windows(padded(x, pad), k.shape[2], k.shape[3], stride, dilation)
    result: Array = (seen[:, None] * k[:, :, None, None]).sum((2, 5, 6))
    return result


def conv2d_bias(x: Array, k: Array, bias: Array, **how: int) -> Array:
    """The same, plus a number for each output channel."""
    return bias[:, None, None] + conv2d(x, k, **how)


def conv1d(x: Array, k: Array, *, stride: int, pad: int, dilation: int) -> Array:
    """A convolution of images of height 1, the padding along them alone."""
    image = np.pad(x, ((0, 0), (0, 0), (pad, pad)))[:, :, None]
    seen = windows(image, 1, k.shape[2], stride, dilation)
    result: Array = (seen[:, None] * k[:, :, None, None, None]).sum((2, 5, 6))[:, :, 0]
    return result


def conv2d_grouped(x: Array, k: Array, *, groups: int, **how: int) -> Array:
    """A convolution for each group."""
    outputs, channels = k.shape[0] // groups, k.shape[1]
    parts = [
        conv2d(
            x[:, group * channels : (group + 1) * channels],
            k[group * outputs : (group + 1) * outputs],
            **how,
        )
        for group in range(groups)
    ]
    return np.concatenate(parts, 1)


def depthwise_conv2d(
    x: Array, k: Array, *, stride: int, pad: int, dilation: int
) -> Array:
    """Windows times the kernel of their channel."""
    seen = windows(padded(x, pad), k.shape[1], k.shape[2], stride, dilation)
    result: Array = (seen * k[:, None, None]).sum((4, 5))
    return result


def conv2d_input_gradient(
    k: Array,
    dy: Array,
    *,
    h_len: int,
    w_len: int,
    stride: int,
    pad: int,
    dilation: int,
) -> Array:
    """The full convolution, with zeros between the elements of dy, and flipped kernels."""
    spaced = np.repeat(np.repeat(dy, stride, 2), stride, 3)
    first = np.zeros(spaced.shape[2:], np.bool_)
    first[::stride, ::stride] = True
    edge = dilation * (max(k.shape[2:]) - 1) + h_len + w_len + pad
    flipped = np.swapaxes(np.flip(k, (2, 3)), 0, 1)
    whole = conv2d(np.where(first, spaced, 0.0), flipped, pad=edge, dilation=dilation)
    top = edge - dilation * (k.shape[2] - 1) + pad
    left = edge - dilation * (k.shape[3] - 1) + pad
    return whole[:, :, top : top + h_len, left : left + w_len]


def conv2d_kernel_gradient(
    x: Array,
    dy: Array,
    *,
    r_len: int,
    s_len: int,
    stride: int,
    pad: int,
    dilation: int,
) -> Array:
    """Windows times the gradient at their places."""
    seen = windows(padded(x, pad), r_len, s_len, stride, dilation)
    places = seen[:, :, : dy.shape[2], : dy.shape[3]]
    result: Array = (places[:, None] * dy[:, :, None, :, :, None, None]).sum((0, 3, 4))
    return result


def max_pool2d(x: Array, *, size: int, stride: int, pad: int) -> Array:
    """The largest of each window."""
    seen = windows(padded(x, pad, LOWEST), size, size, stride)
    largest: Array = seen.max((4, 5), initial=LOWEST)
    return largest


def avg_pool2d(x: Array, *, size: int, stride: int) -> Array:
    """The mean of each window."""
    mean: Array = windows(x, size, size, stride).sum((4, 5)) / (size * size)
    return mean


def global_avg_pool(x: Array) -> Array:
    """The mean of each channel; 0 of nothing."""
    mean: Array = x.sum(-1) / max(x.shape[2], 1)
    return mean


def upsample_nearest(x: Array, *, factor: int) -> Array:
    """Every pixel, repeated both ways."""
    return np.repeat(np.repeat(x, factor, 2), factor, 3)


def _between_centres(x: Array, axis: int, factor: int) -> Array:
    """Linear interpolation along one axis, times twice the factor."""
    length: int = x.shape[axis]
    centres = (np.arange(length * factor) + 0.5) / factor - 0.5
    places = np.clip(centres, 0, length - 1)
    before = np.floor(places + 1e-9).astype(np.intp)
    after = np.minimum(before + 1, length - 1)
    share = np.rint((places - before) * 2 * factor)
    lines = np.moveaxis(x, axis, -1)
    mixed = (2 * factor - share) * lines[..., before] + share * lines[..., after]
    return np.moveaxis(mixed, -1, axis)


def upsample_bilinear(x: Array, *, factor: int) -> Array:
    """Linear interpolation along rows, then along columns."""
    mixed = _between_centres(_between_centres(x, 3, factor), 2, factor)
    return mixed / (4 * factor * factor)


IMAGES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "conv": {
        "conv1d": conv1d,
        "conv2d": conv2d,
        "conv2d_bias": conv2d_bias,
        "conv2d_grouped": conv2d_grouped,
        "depthwise_conv2d": depthwise_conv2d,
        "conv2d_input_gradient": conv2d_input_gradient,
        "conv2d_kernel_gradient": conv2d_kernel_gradient,
    },
    "image": {
        "max_pool2d": max_pool2d,
        "avg_pool2d": avg_pool2d,
        "global_avg_pool": global_avg_pool,
        "upsample_nearest": upsample_nearest,
        "upsample_bilinear": upsample_bilinear,
    },
}
"""The oracle of each kernel, by module and name."""
