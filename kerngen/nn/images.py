"""Functions of images, [samples, channels, height, width]: convolution, pooling, norms."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from kerngen.nn.differentiable import differentiable
from kerngen.nn.elementwise import reshape
from kerngen.nn.shapes import check_rank
from kerngen.nn.variable import (
    AnyTensor,
    Value,
    Variable,
    as_variable,
    computed,
    edge,
)
from kerngen.runtime import ShapeError
from kerngen_kernels import conv, image, norm


def conv2d(
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: int = 1,
    pad: int = 0,
    dilation: int = 1,
) -> Variable:
    """Return the cross-correlation of images with kernels, plus a bias per channel.

    Args:
        x: [b, c, h, w].  The images.
        weight: [o, c, r, s].  A kernel of r x s pixels for each pair of channels.
        bias: [o].
        stride: Pixels from one position of a kernel to the next.
        pad: Zeros on each side of the images.
        dilation: Pixels from one element of a kernel to the next.

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    given, kernels = as_variable(x), as_variable(weight)
    check_rank("conv2d", "x", given, 4, "[b, c, h, w]")
    check_rank("conv2d", "weight", kernels, 4, "[o, c, r, s]")
    if bias is None:
        kernel = differentiable(conv.conv2d)
        y = kernel(given, kernels, stride=stride, pad=pad, dilation=dilation)
        return _variable(y)
    # With a bias, one kernel computes all; its gradients are those of the parts.
    added = as_variable(bias)
    check_rank("conv2d", "bias", added, 1, "[o]")
    (*_, h, w), (*_, r, s) = given.shape, kernels.shape

    of_x = partial(
        conv.conv2d_input_gradient, stride=stride, pad=pad, dilation=dilation
    )
    of_weight = partial(
        conv.conv2d_kernel_gradient, stride=stride, pad=pad, dilation=dilation
    )

    def by_x(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return of_x(kernels.tensor, dy, h_len=h, w_len=w, out=out)

    def by_weight(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return of_weight(given.tensor, dy, r_len=r, s_len=s, out=out)

    def by_bias(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return conv.conv2d_bias_gradient(dy, out=out)

    tensors = (given.tensor, kernels.tensor, added.tensor)
    value = conv.conv2d_bias(*tensors, stride=stride, pad=pad, dilation=dilation)
    return computed(
        value,
        edge(given, by_x, kernels.tensor),
        edge(kernels, by_weight, given.tensor),
        edge(added, by_bias),
    )


def max_pool2d(x: Value, size: int = 2, *, stride: int = 2, pad: int = 0) -> Variable:
    """Return the largest of each window of size x size pixels.

    Pixels of a window that are equally large share its gradient.
    """
    given = as_variable(x)
    check_rank("max_pool2d", "x", given, 4, "[b, c, h, w]")
    pool = differentiable(image.max_pool2d)
    return _variable(pool(given, size=size, stride=stride, pad=pad))


def avg_pool2d(x: Value, size: int = 2, *, stride: int = 2) -> Variable:
    """Return the mean of each window of size x size pixels."""
    given = as_variable(x)
    check_rank("avg_pool2d", "x", given, 4, "[b, c, h, w]")
    return _variable(differentiable(image.avg_pool2d)(given, size=size, stride=stride))


def groupnorm(
    x: Value, gain: Value, bias: Value, groups: int, eps: float = 1e-5
) -> Variable:
    """Return each group of channels with mean 0 and variance 1, times gain plus bias.

    Args:
        x: [b, c, ...].  With one group all channels are one; with c each is its own.
        gain: [c].
        bias: [c].
        groups: How many groups; it divides c.
        eps: Added to the variance.

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    given = as_variable(x)
    samples, channels, pixels = _with_channels("groupnorm", given)
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"groupnorm: {groups} groups do not divide {channels} channels evenly."
        )
    shape = (groups, channels // groups)
    kernel = differentiable(norm.groupnorm)
    parts = reshape(given, (samples, *shape, pixels))
    vectors = (
        reshape(_channels("groupnorm", each, channels), shape) for each in (gain, bias)
    )
    return reshape(_variable(kernel(parts, *vectors, eps=eps)), given.shape)


def batchnorm(x: Value, gain: Value, bias: Value, eps: float = 1e-5) -> Variable:
    """Return each channel with mean 0 and variance 1 over the batch: as in training.

    Args:
        x: [b, c, ...].
        gain: [c].
        bias: [c].
        eps: Added to the variance.

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    given = as_variable(x)
    shape = _with_channels("batchnorm", given)
    vectors = (_channels("batchnorm", each, shape[1]) for each in (gain, bias))
    kernel = differentiable(norm.batchnorm_training)
    y = kernel(reshape(given, shape), *vectors, eps=eps)
    return reshape(_variable(y), given.shape)


def _with_channels(name: str, x: Variable) -> tuple[int, int, int]:
    """Return the numbers of samples, channels and pixels."""
    if x.ndim < 2:
        raise ShapeError(
            f"{name}: x has shape {x.shape}; expected [b, c, ...], samples and channels."
        )
    samples, channels, *pixels = x.shape
    return samples, channels, math.prod(pixels)


def _channels(name: str, value: Value, count: int) -> Variable:
    given = as_variable(value)
    if given.shape != (count,):
        raise ShapeError(
            f"{name}: gain and bias have a number for each channel: expected shape "
            f"({count},), got {given.shape}."
        )
    return given


def _variable(value: Any) -> Variable:
    assert isinstance(value, Variable), "the kernels have one output"
    return value
