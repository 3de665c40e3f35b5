"""The network: a transformer that sees the characters so far and scores the next one.

Each block adds to its input what attention makes of it, then what two linear layers with a
gelu between them do; a norm comes before both (Vaswani et al., 2017; Xiong et al., 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from examples.characters.data import Ids
from kerngen import nn
from kerngen.runtime import Tensor, u32

Parameters = Mapping[str, nn.Value]
"""A trainer's parameters, to train the network, or its tensors, to use it."""

Numbers = Ids | Tensor[u32, Any]
"""Numbers of characters, or of places in a row: an array, or on the device already."""


@final
@dataclass(frozen=True)
class Sizes:
    """How large the network is.

    `context` is how many characters it can see, `width` how many features each has.
    """

    vocabulary: int
    context: int
    width: int
    heads: int
    layers: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters; weights are `[outputs, inputs]`."""
        width = self.width
        block: dict[str, tuple[int, ...]] = {
            "attention.norm": (width,),
            "attention.query": (width, width),
            "attention.key": (width, width),
            "attention.value": (width, width),
            "attention.out": (width, width),
            "mlp.norm": (width,),
            "mlp.in": (4 * width, width),
            "mlp.out": (width, 4 * width),
        }
        return {
            "embedding": (self.vocabulary, width),
            "positions": (self.context, width),
            **{
                f"block{layer}.{name}": shape
                for layer in range(self.layers)
                for name, shape in block.items()
            },
            "norm": (width,),
            "scores": (self.vocabulary, width),
        }

    def initial(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Draw initial parameters."""
        rng = np.random.default_rng(seed)
        return {
            name: self._draw(name, shape, rng) for name, shape in self.shapes.items()
        }

    def _draw(
        self, name: str, shape: tuple[int, ...], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        if name.endswith("norm"):
            return np.ones(shape, np.float32)
        scale = shape[-1] ** -0.5
        if name.endswith(".out"):  # 2 per layer add up: keep the sum's variance
            scale /= (2 * self.layers) ** 0.5
        if name == "scores":  # at first, all characters are as likely
            scale *= 0.1
        return rng.normal(0, scale, shape).astype(np.float32)


def scores(
    p: Parameters, sizes: Sizes, ids: Numbers, places: Numbers | None = None
) -> nn.Variable:
    """Return the unnormalized log-probabilities of each next character.

    Args:
        p: The parameters, of the shapes that `sizes` says.
        sizes: Of the network.
        ids: `[rows, characters]`, at most `sizes.context` characters.
        places: Where in its row each character is: 0, 1, 2 and so on, if given.  A
            captured step uploads nothing, and so needs them on the device.

    Returns:
        `[rows, characters, vocabulary]`: what follows a character, given it and all
        those before it in its row.
    """
    if places is None:
        places = np.arange(ids.shape[1], dtype=np.uint32)
    x = nn.add(nn.embedding(p["embedding"], ids), nn.embedding(p["positions"], places))
    for layer in range(sizes.layers):
        x = nn.add(x, _attend(p, f"block{layer}.attention", x, sizes.heads))
        x = nn.add(x, _think(p, f"block{layer}.mlp", x))
    return nn.linear(nn.rmsnorm(x, p["norm"]), p["scores"])


def _attend(p: Parameters, name: str, x: nn.Variable, heads: int) -> nn.Variable:
    """Let each character look at itself and at those before it."""
    y = nn.rmsnorm(x, p[f"{name}.norm"])
    q, k, v = (nn.linear(y, p[f"{name}.{role}"]) for role in ("query", "key", "value"))
    seen = nn.attention(q, k, v, heads=heads, causal=True)
    return nn.linear(seen, p[f"{name}.out"])


def _think(p: Parameters, name: str, x: nn.Variable) -> nn.Variable:
    """Work on each character by itself."""
    hidden = nn.linear(nn.rmsnorm(x, p[f"{name}.norm"]), p[f"{name}.in"])
    return nn.linear(nn.gelu(hidden), p[f"{name}.out"])
