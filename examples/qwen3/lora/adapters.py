"""The parameters of LoRA: a pair of thin matrices beside each adapted matrix.

A linear layer x W^T becomes x W^T + (alpha / rank) (x A^T) B^T (Hu et al., 2021): W is
frozen, A and B are trained.  A is [rank, inputs], B is [outputs, rank].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from examples.qwen3.config import Config

ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP: Final = ("gate_proj", "up_proj", "down_proj")
TARGETS: Final = (*ATTENTION, *MLP)
"""The matrices of a layer that may be adapted, as Hugging Face's files name them."""


@final
@dataclass(frozen=True)
class Lora:
    """Which matrices are adapted, and how."""

    rank: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = ATTENTION

    @property
    def scale(self) -> float:
        """What a pair's product is multiplied by."""
        return self.alpha / self.rank

    def adapted(self, config: Config) -> dict[str, tuple[int, int]]:
        """Return the names of the adapted matrices, `model.layers.0.self_attn.q_proj`.

        Each has its shape, [outputs, inputs].
        """
        own, shared = (
            heads * config.head_width for heads in (config.heads, config.kv_heads)
        )
        width, hidden = config.width, config.hidden
        shapes = {
            "q_proj": (own, width),
            "k_proj": (shared, width),
            "v_proj": (shared, width),
            "o_proj": (width, own),
            "gate_proj": (hidden, width),
            "up_proj": (hidden, width),
            "down_proj": (width, hidden),
        }
        return {
            matrix_name(layer, target): shapes[target]
            for layer in range(config.layers)
            for target in self.targets
        }

    def initial(self, config: Config, seed: int) -> dict[str, NDArray[np.float32]]:
        """Draw the pairs: B is 0, so that the first step starts at the model as it is."""
        rng = np.random.default_rng(seed)
        drawn: dict[str, NDArray[np.float32]] = {}
        for name, (outputs, inputs) in self.adapted(config).items():
            bound = inputs**-0.5  # as nn.Linear of PyTorch, and so peft, draws it
            a, b = pair_names(name)
            drawn[a] = rng.uniform(-bound, bound, (self.rank, inputs)).astype(
                np.float32
            )
            drawn[b] = np.zeros((outputs, self.rank), np.float32)
        return drawn

    def change(
        self, name: str, parameters: Mapping[str, NDArray[Any]]
    ) -> NDArray[np.float64]:
        """Return what a pair adds to its matrix, in float64."""
        a, b = (parameters[each].astype(np.float64) for each in pair_names(name))
        product: NDArray[np.float64] = self.scale * (b @ a)
        return product


def matrix_name(layer: int, target: str) -> str:
    """Return the name of a layer's matrix in Hugging Face's files, without `.weight`."""
    part = "self_attn" if target in ATTENTION else "mlp"
    return f"model.layers.{layer}.{part}.{target}"


def pair_names(matrix: str) -> tuple[str, str]:
    """Return the names of the parameters A and B of a matrix."""
    return f"{matrix}.lora_A", f"{matrix}.lora_B"
