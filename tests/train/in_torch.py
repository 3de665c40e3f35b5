"""AdamW and the clipping of gradients in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .adamw import Arrays, Settings

# PyTorch is in an extra of its own, and so unknown to the type checkers.
torch: Any = import_module("torch")


class AdamW:
    """PyTorch's own optimizer, with a group for each parameter."""

    def __init__(self, parameters: Arrays, settings: Mapping[str, Settings]) -> None:
        self._parameters = {
            name: torch.tensor(array, requires_grad=True)
            for name, array in parameters.items()
        }
        groups = [
            _group(parameter, **settings[name])
            for name, parameter in self._parameters.items()
        ]
        self._optimizer: Any = torch.optim.AdamW(groups)

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


def _group(
    parameter: Any, beta1: float = 0.9, beta2: float = 0.999, **settings: float
) -> dict[str, Any]:
    return {"params": [parameter], "betas": (beta1, beta2), **settings}
