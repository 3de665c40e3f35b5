"""The functions of kerngen.nn beside NumPy's, and arguments for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kerngen import nn
from kerngen.runtime import f32

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Ours: TypeAlias = Callable[..., nn.Variable]
Theirs: TypeAlias = Callable[..., Any]

IDS = [[0, 3, 3], [6, 1, 0]]
LABELS = np.array([4, 0, 2, 2, 1])


@final
@dataclass(frozen=True)
class Function:
    """A function here and in NumPy, for arguments of these shapes, all differentiable."""

    name: str
    ours: Ours
    theirs: Theirs
    shapes: Shapes

    def __str__(self) -> str:
        """The name and the shapes."""
        return f"{self.name}-{'-'.join(map(str, self.shapes.values()))}"


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def _swish(x: Array) -> Any:
    return x * _sigmoid(x)


def _leaky_relu(x: Array) -> Any:
    return np.where(x < 0, 0.2 * x, x)


def _gelu(x: Array) -> Any:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _gelu_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _softmax(x: Array) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _log_softmax(x: Array) -> Any:
    return np.log(_softmax(x))


def _linear(x: Array, w: Array, b: Array | float = 0.0) -> Any:
    return x @ w.T + b


def _layernorm(x: Array, gain: Array, bias: Array) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def _rmsnorm(x: Array, gain: Array) -> Any:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * gain


def _embedding(table: Array) -> Any:
    return table[IDS]


def _cross_entropy(x: Array) -> Any:
    return -_log_softmax(x)[np.arange(len(LABELS)), LABELS].mean()


def _mean_squared_error(prediction: Array, target: Array) -> Any:
    return ((prediction - target) ** 2).mean()


def _attention(heads: int, *, causal: bool) -> Theirs:
    """Attention as its definition has it, head by head; a mask ends at the last key."""

    def attend(q: Array, k: Array, v: Array) -> Any:
        queries, keys = q.shape[1], k.shape[1]
        seen = np.tri(queries, keys, keys - queries) if causal else np.ones(1)
        parts: list[Array] = []
        for a, b, c in zip(*(np.split(t, heads, -1) for t in (q, k, v)), strict=True):
            scores = a @ b.swapaxes(1, 2) / math.sqrt(a.shape[-1])
            parts.append(_softmax(np.where(seen, scores, -np.inf)) @ c)
        return np.concatenate(parts, -1)

    return attend


def _conv2d(x: Array, weight: Array, bias: Array | None = None) -> Any:
    """With a stride of 2, and one zero on each side."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, weight.shape[2:], (2, 3))[:, :, ::2, ::2]
    y = np.einsum("bcijrs,ocrs->boij", windows, weight)
    return y if bias is None else y + bias[:, None, None]


def _windows(x: Array) -> Any:
    return sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2]


def _max_pool2d(x: Array) -> Any:
    return _windows(x).max((4, 5))


def _avg_pool2d(x: Array) -> Any:
    return _windows(x).mean((4, 5))


def _standard(x: Array, axes: tuple[int, ...]) -> Any:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)


def _groupnorm(x: Array, gain: Array, bias: Array) -> Any:
    """Of two groups."""
    parts = x.reshape(x.shape[0], 2, -1)
    y = _standard(parts, (2,)).reshape(x.shape)
    return y * gain[:, None, None] + bias[:, None, None]


def _batchnorm(x: Array, gain: Array, bias: Array) -> Any:
    return _standard(x, (0, 2)) * gain[:, None] + bias[:, None]


TARGET = np.linspace(0.0, 1.0, 21).reshape(3, 7)


def _with_target(loss: Callable[..., nn.Variable]) -> Ours:
    def of(x: nn.Value) -> nn.Variable:
        tensor = x.tensor if isinstance(x, nn.Variable) else x
        return loss(x, tensor.ctx.matrix(TARGET, f32))

    return of


def _huber(x: Array) -> Any:
    e = np.abs(x - TARGET)
    return np.where(e <= 0.5, e * e / 2, 0.5 * (e - 0.25)).mean()


def _binary_cross_entropy(x: Array) -> Any:
    return (np.logaddexp(0, x) - x * TARGET).mean()


def _square(x: nn.Value) -> nn.Variable:
    return nn.mul(x, x)


def _three_ways(x: nn.Value) -> nn.Variable:
    return nn.add(nn.tanh(x), nn.sub(nn.gelu(x), x))


def _three_ways_in_numpy(x: Array) -> Any:
    return np.tanh(x) + _gelu(x) - x


def _each(shapes: Shapes, **pairs: tuple[Ours, Theirs]) -> list[Function]:
    return [Function(name, *pair, shapes) for name, pair in pairs.items()]


_IMAGES = {"x": (2, 3, 5, 4), "weight": (2, 3, 3, 2)}
_CHANNELS = {"gain": (4,), "bias": (4,)}

FUNCTIONS = [
    Function("conv2d", partial(nn.conv2d, stride=2, pad=1), _conv2d, _IMAGES),
    Function(
        "conv2d",
        partial(nn.conv2d, stride=2, pad=1),
        _conv2d,
        {**_IMAGES, "bias": (2,)},
    ),
    *_each(
        {"x": (2, 3, 5, 4)},
        max_pool2d=(nn.max_pool2d, _max_pool2d),
        avg_pool2d=(nn.avg_pool2d, _avg_pool2d),
    ),
    Function(
        "groupnorm",
        partial(nn.groupnorm, groups=2),
        _groupnorm,
        {"x": (2, 4, 3, 2), **_CHANNELS},
    ),
    Function("batchnorm", nn.batchnorm, _batchnorm, {"x": (3, 4, 5), **_CHANNELS}),
    *_each(
        {"x": (3, 7)},
        huber=(_with_target(partial(nn.huber, delta=0.5)), _huber),
        binary_cross_entropy=(
            _with_target(nn.binary_cross_entropy),
            _binary_cross_entropy,
        ),
    ),
    *_each(
        {"x": (3, 4, 5)},
        relu=(nn.relu, partial(np.maximum, 0)),
        leaky_relu=(
            partial(nn.leaky_relu, slope=0.2),
            _leaky_relu,
        ),
        gelu=(nn.gelu, _gelu),
        gelu_tanh=(nn.gelu_tanh, _gelu_tanh),
        swish=(nn.swish, _swish),
        sigmoid=(nn.sigmoid, _sigmoid),
        tanh=(nn.tanh, np.tanh),
        scale=(partial(nn.scale, alpha=-2.5), partial(np.multiply, -2.5)),
        softmax=(nn.softmax, _softmax),
        log_softmax=(nn.log_softmax, _log_softmax),
        reshape=(
            partial(nn.reshape, shape=(5, -1)),
            partial(np.reshape, shape=(5, -1)),
        ),
        twice=(_square, np.square),
        shared=(
            _three_ways,
            _three_ways_in_numpy,
        ),
    ),
    Function("mean", nn.mean, np.mean, {"x": (3, 7)}),
    Function("mean", nn.mean, np.mean, {"x": ()}),
    Function("transpose", nn.transpose, np.transpose, {"x": (3, 7)}),
    *_each(
        {"a": (3, 4, 5), "b": (3, 4, 5)},
        add=(nn.add, np.add),
        sub=(nn.sub, np.subtract),
        mul=(nn.mul, np.multiply),
    ),
    Function("add", nn.add, np.add, {"a": (3, 4, 5), "b": (4, 5)}),
    Function("add", nn.add, np.add, {"a": (3, 4, 5), "b": (5,)}),
    Function("add", nn.add, np.add, {"a": (3, 4), "b": ()}),
    Function("matmul", nn.matmul, np.matmul, {"a": (3, 7), "b": (7, 5)}),
    Function("linear", nn.linear, _linear, {"x": (3, 7), "w": (5, 7)}),
    Function("linear", nn.linear, _linear, {"x": (2, 3, 7), "w": (5, 7), "b": (5,)}),
    Function("linear", nn.linear, _linear, {"x": (7,), "w": (1, 7), "b": (1,)}),
    Function("linear", nn.linear, _linear, {"x": (64, 32), "w": (96, 32), "b": (96,)}),
    Function(
        "layernorm",
        nn.layernorm,
        _layernorm,
        {"x": (2, 3, 17), "gain": (17,), "bias": (17,)},
    ),
    Function("rmsnorm", nn.rmsnorm, _rmsnorm, {"x": (6, 17), "gain": (17,)}),
    Function(
        "embedding",
        partial(nn.embedding, ids=IDS),
        _embedding,
        {"table": (7, 5)},
    ),
    Function(
        "cross_entropy",
        partial(nn.cross_entropy, labels=LABELS),
        _cross_entropy,
        {"x": (5, 6)},
    ),
    Function(
        "mean_squared_error",
        nn.mean_squared_error,
        _mean_squared_error,
        {"prediction": (4, 3), "target": (4, 3)},
    ),
    *(
        Function(
            f"attention_{heads}{'_causal' * causal}",
            partial(nn.attention, heads=heads, causal=causal),
            _attention(heads, causal=causal),
            {"q": (2, 5, 8), "k": (2, keys, 8), "v": (2, keys, 12)},
        )
        for heads, causal, keys in [
            (1, False, 7),
            (4, False, 5),
            (4, True, 5),
            (2, True, 7),
        ]
    ),
]
