"""How the next token is chosen: on the device, or by top-k and top-p on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from examples.qwen3.errors import ModelError
from kerngen.runtime import Matrix, Vector, f32, u32
from kerngen_kernels import indexing, random


class Sampler(Protocol):
    """Chooses a token by the logits `[1, vocabulary]` and the number of the draw."""

    def __call__(
        self, logits: Matrix[f32], place: int, *, out: Vector[u32] | None = None
    ) -> Vector[u32]:
        """Return the token: in `out`, if that is given."""
        ...


def greedy(
    logits: Matrix[f32], place: int, *, out: Vector[u32] | None = None
) -> Vector[u32]:
    """Choose the likeliest token."""
    del place
    return indexing.argmax(logits, out=out)


def make_sampler(
    *, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, seed: int = 0
) -> Sampler:
    """Return a sampler; 0, 0 and 1 leave temperature, top-k and top-p out.

    Without top-k and top-p the draw stays on the device.

    Raises:
        ModelError: If a number is outside of its range.
    """
    if not 0 <= temperature < np.inf:
        raise ModelError(f"The temperature is 0 or more, not {temperature}.")
    if top_k < 0:
        raise ModelError(f"top-k is 0 or more, not {top_k}.")
    if not 0 < top_p <= 1:
        raise ModelError(f"top-p is above 0 and at most 1, not {top_p}.")
    if not 0 <= seed < 1 << 32:
        raise ModelError(f"The seed is a number of 32 bits, not {seed}.")
    if temperature == 0 and (top_k or top_p < 1):
        raise ModelError("top-k and top-p draw: they need a temperature above 0.")
    if temperature == 0:
        return greedy
    if top_k or top_p < 1:
        return Nucleus(temperature, top_k, top_p, seed)
    return Drawn(temperature, seed)


@final
@dataclass(frozen=True)
class Drawn:
    """Draws on the device, by noise that is added to the logits."""

    temperature: float
    seed: int

    def __call__(
        self, logits: Matrix[f32], place: int, *, out: Vector[u32] | None = None
    ) -> Vector[u32]:
        """Draw the token of a number."""
        noisy = random.gumbel(
            logits, temperature=self.temperature, seed=self.seed, place=place
        )
        return indexing.argmax(noisy, out=out)


@final
@dataclass(frozen=True)
class Nucleus:
    """Draws among the likeliest tokens (Holtzman et al., 2020); reads all logits."""

    temperature: float
    top_k: int
    top_p: float
    seed: int

    def __call__(
        self, logits: Matrix[f32], place: int, *, out: Vector[u32] | None = None
    ) -> Vector[u32]:
        """Draw the token of a number, on the host."""
        kept = likeliest(logits.numpy()[0], self.temperature, self.top_k, self.top_p)
        rng = np.random.default_rng((self.seed, place))
        token = rng.choice(len(kept), p=kept)
        if out is None:
            return logits.ctx.vector([token], u32)
        out.copy_from([token])
        return out


def likeliest(
    logits: NDArray[np.float32], temperature: float, top_k: int, top_p: float
) -> NDArray[np.float64]:
    """Return each token's probability once the unlikely ones are left out.

    As transformers orders it: temperature, then top-k, then top-p of what is left.
    """
    scaled = logits.astype(np.float64) / temperature
    order = np.argsort(-scaled, kind="stable")
    count = min(top_k, len(order)) if top_k else len(order)
    chances = np.exp(scaled[order] - scaled[order[0]])
    chances[count:] = 0
    chances /= chances.sum()
    # A token stays while those before it have less than top-p together.
    chances[np.cumsum(chances) - chances >= top_p] = 0
    result = np.zeros(len(order))
    result[order] = chances / chances.sum()
    return result
