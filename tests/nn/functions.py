"""The functions of kerngen.nn beside torch's, and arguments for both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from kerngen import nn

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Ours: TypeAlias = Callable[..., nn.Variable]
Theirs: TypeAlias = Callable[..., torch.Tensor]

IDS = [[0, 3, 3], [6, 1, 0]]
LABELS = np.array([4, 0, 2, 2, 1])


@final
@dataclass(frozen=True)
class Function:
    """A function here and in torch, for arguments of these shapes, all differentiable."""

    name: str
    ours: Ours
    theirs: Theirs
    shapes: Shapes

    def __str__(self) -> str:
        """The name and the shapes."""
        return f"{self.name}-{'-'.join(map(str, self.shapes.values()))}"


def _heads(t: torch.Tensor, heads: int) -> torch.Tensor:
    return t.reshape(*t.shape[:2], heads, -1).transpose(1, 2)


def _attention(heads: int, *, causal: bool) -> Theirs:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        s, t = q.shape[1], k.shape[1]
        mask = torch.ones(s, t, dtype=torch.bool).tril(t - s) if causal else None
        y = F.scaled_dot_product_attention(
            _heads(q, heads), _heads(k, heads), _heads(v, heads), mask
        )
        return y.transpose(1, 2).flatten(2)

    return attend


def _square(x: nn.Value) -> nn.Variable:
    return nn.mul(x, x)


def _three_ways(x: nn.Value) -> nn.Variable:
    return nn.add(nn.tanh(x), nn.sub(nn.gelu(x), x))


def _three_ways_in_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) + F.gelu(x) - x


def _rmsnorm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, gain.shape, gain, 1e-6)


def _layernorm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, gain.shape, gain, bias, 1e-5)


def _each(shapes: Shapes, **pairs: tuple[Ours, Theirs]) -> list[Function]:
    return [Function(name, *pair, shapes) for name, pair in pairs.items()]


FUNCTIONS = [
    *_each(
        {"x": (3, 4, 5)},
        relu=(nn.relu, torch.relu),
        leaky_relu=(
            partial(nn.leaky_relu, slope=0.2),
            partial(F.leaky_relu, negative_slope=0.2),
        ),
        gelu=(nn.gelu, F.gelu),
        gelu_tanh=(nn.gelu_tanh, partial(F.gelu, approximate="tanh")),
        swish=(nn.swish, F.silu),
        sigmoid=(nn.sigmoid, torch.sigmoid),
        tanh=(nn.tanh, torch.tanh),
        scale=(partial(nn.scale, alpha=-2.5), partial(torch.mul, -2.5)),
        softmax=(nn.softmax, partial(F.softmax, dim=-1)),
        log_softmax=(nn.log_softmax, partial(F.log_softmax, dim=-1)),
        reshape=(
            partial(nn.reshape, shape=(5, -1)),
            partial(torch.reshape, shape=(5, -1)),
        ),
        twice=(_square, torch.square),
        shared=(
            _three_ways,
            _three_ways_in_torch,
        ),
    ),
    Function("mean", nn.mean, torch.mean, {"x": (3, 7)}),
    Function("mean", nn.mean, torch.mean, {"x": ()}),
    Function("transpose", nn.transpose, torch.t, {"x": (3, 7)}),
    *_each(
        {"a": (3, 4, 5), "b": (3, 4, 5)},
        add=(nn.add, torch.add),
        sub=(nn.sub, torch.sub),
        mul=(nn.mul, torch.mul),
    ),
    Function("add", nn.add, torch.add, {"a": (3, 4, 5), "b": (4, 5)}),
    Function("add", nn.add, torch.add, {"a": (3, 4, 5), "b": (5,)}),
    Function("add", nn.add, torch.add, {"a": (3, 4), "b": ()}),
    Function("matmul", nn.matmul, torch.matmul, {"a": (3, 7), "b": (7, 5)}),
    Function("linear", nn.linear, F.linear, {"x": (3, 7), "w": (5, 7)}),
    Function("linear", nn.linear, F.linear, {"x": (2, 3, 7), "w": (5, 7), "b": (5,)}),
    Function("linear", nn.linear, F.linear, {"x": (7,), "w": (1, 7), "b": (1,)}),
    Function("linear", nn.linear, F.linear, {"x": (64, 32), "w": (96, 32), "b": (96,)}),
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
        partial(F.embedding, torch.tensor(IDS)),
        {"table": (7, 5)},
    ),
    Function(
        "cross_entropy",
        partial(nn.cross_entropy, labels=LABELS),
        partial(F.cross_entropy, target=torch.tensor(LABELS)),
        {"x": (5, 6)},
    ),
    Function(
        "mean_squared_error",
        nn.mean_squared_error,
        F.mse_loss,
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
