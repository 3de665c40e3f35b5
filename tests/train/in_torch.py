"""Optimizers and the clipping of gradients in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from kerngen.train.optimizers import Name

from .optimizers import Arrays, Settings

# PyTorch is in an extra of its own, and so unknown to the type checkers.
torch: Any = import_module("torch")

OPTIMIZERS = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}
"""PyTorch's class of each optimizer; it has no Lion."""


class InTorch:
    """PyTorch's own optimizer, with a group for each parameter."""

    def __init__(
        self, name: Name, parameters: Arrays, settings: Mapping[str, Settings]
    ) -> None:
        self._parameters = {
            name: torch.tensor(array, requires_grad=True)
            for name, array in parameters.items()
        }
        groups = [
            _group(parameter, **settings[name])
            for name, parameter in self._parameters.items()
        ]
        self._optimizer: Any = getattr(torch.optim, OPTIMIZERS[name])(groups)

    @property
    def parameters(self) -> Arrays:
        return {name: p.detach().numpy() for name, p in self._parameters.items()}

    def step(self, gradients: Arrays, max_norm: float) -> float:
        for name, parameter in self._parameters.items():
            parameter.grad = torch.tensor(gradients[name])
        clip = torch.nn.utils.clip_grad_norm_
        norm = float(clip(self._parameters.values(), max_norm).item())
        self._optimizer.step()
        return norm


def _group(parameter: Any, **settings: float) -> dict[str, Any]:
    betas = settings.pop("beta1", None), settings.pop("beta2", None)
    return {"params": [parameter], **settings, **({"betas": betas} if betas[0] else {})}
