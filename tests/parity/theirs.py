"""The networks in PyTorch, trained by its own optimizer on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from tests.parity.record import Record
from tests.parity.tasks import HEADS, Array, Batch, Settings, Task

# PyTorch is in an extra of its own, and so unknown to the type checkers.
torch: Any = import_module("torch")
functional: Any = import_module("torch.nn.functional")

Tensor: TypeAlias = Any
Parameters: TypeAlias = Mapping[str, Tensor]
Network: TypeAlias = Callable[[Parameters, Tensor, Tensor], Tensor]


def two_layers(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss of two linear layers with a gelu between them."""
    return functional.cross_entropy(
        linear(p, "out", functional.gelu(linear(p, "hidden", x))), y
    )


def transformer(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss of a block of attention and of two layers, each residual."""
    h = functional.embedding(x, p["table"]) + p["positions"]
    a = norm(p, "before", h)
    q = by_heads(linear(p, "query", a))
    k = by_heads(functional.linear(a, p["key.weight"]))
    v = by_heads(linear(p, "value", a))
    attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    h = h + linear(p, "attended", attended.transpose(1, 2).flatten(2))
    h = h + linear(p, "down", functional.gelu(linear(p, "up", norm(p, "between", h))))
    logits = linear(p, "head", norm(p, "after", h))
    return functional.cross_entropy(logits.flatten(0, 1), y.flatten())


def by_heads(x: Tensor) -> Tensor:
    """Return [batch, positions, features] as [batch, heads, positions, features of one]."""
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(1, 2)


def residual(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss of two residual layers that share their weights.

    The weight of the first layer, read the other way, is that of the last.
    """
    h = linear(p, "in", x)
    for gain in ("first.gain", "second.gain"):
        h = h + functional.silu(
            linear(p, "mix", functional.rms_norm(h, h.shape[-1:], p[gain], 1e-6))
        )
    last = functional.rms_norm(h, h.shape[-1:], p["last.gain"], 1e-6)
    return functional.mse_loss(last @ p["in.weight"], y)


def linear(p: Parameters, name: str, x: Tensor) -> Tensor:
    """Return a linear layer of x, by the weight and the bias of that name."""
    return functional.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def norm(p: Parameters, name: str, x: Tensor) -> Tensor:
    """Return a layer norm of x, by the gain and the bias of that name."""
    return functional.layer_norm(x, x.shape[-1:], p[f"{name}.gain"], p[f"{name}.bias"])


NETWORKS: dict[str, Network] = {
    "two layers": two_layers,
    "transformer": transformer,
    "residual": residual,
}


def train(
    task: Task,
    *,
    dtype: str = "float32",
    threads: int = 1,
    optimizer: str = "AdamW",
) -> Record:
    """Take all steps of a task."""
    parameters = {
        name: torch.tensor(array, dtype=getattr(torch, dtype), requires_grad=True)
        for name, array in task.parameters.items()
    }
    update = _optimizer(optimizer, parameters, task.settings)
    with _threads(threads):
        taken = [_step(parameters, update, task, batches) for batches in task.steps]
    losses, norms = zip(*taken, strict=True)
    final = {name: tensor.detach().numpy() for name, tensor in parameters.items()}
    return Record(np.array(losses), np.array(norms), final)


def _optimizer(kind: str, parameters: Parameters, settings: Settings) -> Any:
    return getattr(torch.optim, kind)(
        parameters.values(),
        lr=settings.lr,
        betas=(settings.beta1, settings.beta2),
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )


def _step(
    parameters: Parameters,
    optimizer: Any,
    task: Task,
    batches: tuple[Batch, ...],
) -> tuple[float, float]:
    """Return the loss, and the norm of the gradients before they are clipped."""
    dtype = next(iter(parameters.values())).dtype
    optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        x, y = (_tensor(array, dtype) for array in (batch.x, batch.y))
        loss = NETWORKS[task.network](parameters, x, y)
        torch.autograd.backward(loss)
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(parameters.values(), task.settings.max_norm)
    optimizer.step()
    return total, norm.item()


def _tensor(array: Array, dtype: Any) -> Tensor:
    tensor = torch.tensor(array)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


@contextmanager
def _threads(count: int) -> Generator[None, None, None]:
    """Compute with so many threads, then with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
