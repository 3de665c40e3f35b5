"""The networks in `kerngen.nn`, trained by `kerngen.train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from kerngen import nn
from kerngen.runtime import Context, Scalar, Tensor, f32, u32
from kerngen.train import Trainer
from tests.parity.record import Record
from tests.parity.tasks import HEADS, Array, Batch, Task

Parameters = Mapping[str, nn.Variable]
Network = Callable[[Parameters, Tensor[Any, Any], Tensor[Any, Any]], nn.Variable]


def two_layers(p: Parameters, x: Tensor[Any, Any], y: Tensor[Any, Any]) -> nn.Variable:
    """Return the loss of two linear layers with a gelu between them."""
    hidden = nn.gelu(linear(p, "hidden", x))
    return nn.cross_entropy(linear(p, "out", hidden), y)


def transformer(p: Parameters, x: Tensor[Any, Any], y: Tensor[Any, Any]) -> nn.Variable:
    """Return the loss of a block of attention and of two layers, each residual."""
    h = nn.add(nn.embedding(p["table"], x), p["positions"])
    a = norm(p, "before", h)
    attended = nn.attention(
        linear(p, "query", a),
        nn.linear(a, p["key.weight"]),
        linear(p, "value", a),
        heads=HEADS,
        causal=True,
    )
    h = nn.add(h, linear(p, "attended", attended))
    up = nn.gelu(linear(p, "up", norm(p, "between", h)))
    h = nn.add(h, linear(p, "down", up))
    return nn.cross_entropy(linear(p, "head", norm(p, "after", h)), y)


def residual(p: Parameters, x: Tensor[Any, Any], y: Tensor[Any, Any]) -> nn.Variable:
    """Return the loss of two residual layers that share their weights.

    The weight of the first layer, read the other way, is that of the last.
    """
    h = linear(p, "in", x)
    for gain in ("first.gain", "second.gain"):
        h = nn.add(h, nn.swish(linear(p, "mix", nn.rmsnorm(h, p[gain]))))
    return nn.mean_squared_error(
        nn.matmul(nn.rmsnorm(h, p["last.gain"]), p["in.weight"]), y
    )


def linear(p: Parameters, name: str, x: nn.Value) -> nn.Variable:
    """Return a linear layer of x, by the weight and the bias of that name."""
    return nn.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def norm(p: Parameters, name: str, x: nn.Value) -> nn.Variable:
    """Return a layer norm of x, by the gain and the bias of that name."""
    return nn.layernorm(x, p[f"{name}.gain"], p[f"{name}.bias"])


NETWORKS: dict[str, Network] = {
    "two layers": two_layers,
    "transformer": transformer,
    "residual": residual,
}


@final
@dataclass(frozen=True)
class Trained:
    """A training of which all steps are recorded, and none of their results is read."""

    trainer: Trainer
    losses: tuple[tuple[nn.Variable, ...], ...]
    norms: tuple[Scalar[f32], ...]

    def read(self) -> Record:
        """Wait for the device."""
        return Record(
            np.array([sum(loss.item() for loss in losses) for losses in self.losses]),
            np.array([norm.item() for norm in self.norms]),
            {name: tensor.numpy() for name, tensor in self.trainer.tensors.items()},
        )


def train(ctx: Context, task: Task) -> Trained:
    """Record all steps of a task."""
    trainer = Trainer(ctx, task.parameters)
    taken = [_step(trainer, task, batches) for batches in task.steps]
    losses, norms = zip(*taken, strict=True)
    return Trained(trainer, losses, norms)


def _step(
    trainer: Trainer, task: Task, batches: tuple[Batch, ...]
) -> tuple[tuple[nn.Variable, ...], Scalar[f32]]:
    network, settings = NETWORKS[task.network], task.settings
    losses: list[nn.Variable] = []
    for batch in batches:
        x, y = (_upload(trainer.ctx, array) for array in (batch.x, batch.y))
        loss = network(trainer.parameters, x, y)
        trainer.backward(loss, accumulate=bool(losses))
        losses.append(loss)
    norm = trainer.clip_gradients(settings.max_norm)
    trainer.adamw_step(
        lr=settings.lr,
        beta1=settings.beta1,
        beta2=settings.beta2,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )
    return tuple(losses), norm


def _upload(ctx: Context, array: Array) -> Tensor[Any, Any]:
    return ctx.tensor(array, f32 if array.dtype.kind == "f" else u32)
