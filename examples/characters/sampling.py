"""Sampling: what the network writes, character by character."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from examples.characters.data import Vocabulary
from examples.characters.model import Parameters, Sizes, scores


@final
@dataclass(frozen=True)
class Request:
    """What to write: so many texts of a length, all of them going on from a prompt.

    A temperature below 1 prefers what is likely; at 0 only the likeliest is taken.
    """

    prompt: str
    length: int
    count: int
    temperature: float
    seed: int


def sample(
    tensors: Parameters, sizes: Sizes, vocabulary: Vocabulary, request: Request
) -> list[str]:
    """Return texts, prompt included; each new character waits for the device once."""
    rng = np.random.default_rng(request.seed)
    ids = np.tile(vocabulary.encode(request.prompt), (request.count, 1))
    for _ in range(request.length):
        seen = ids[:, -sizes.context :]
        last = scores(tensors, sizes, seen).numpy()[:, -1].astype(np.float64)
        last[:, len(vocabulary.characters) :] = -np.inf  # these stand for no character
        # The largest of scores with Gumbel noise is a draw from their softmax.
        noise = rng.gumbel(size=last.shape) * request.temperature
        new = np.argmax(last + noise, axis=1).astype(np.uint32)
        ids = np.concatenate([ids, new[:, None]], axis=1)
    return [vocabulary.decode(row) for row in ids]
