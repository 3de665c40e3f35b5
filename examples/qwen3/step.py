"""A token at a time: calls that are captured once, and replayed for each token."""

from __future__ import annotations

from itertools import cycle
from typing import final

from examples.qwen3.model import Cache, Model
from examples.qwen3.sampling import Drawn, Nucleus, Sampler
from kerngen.runtime import Vector, u32


@final
class Step:
    """The step from a token to the next one; the token stays on the device.

    Position, tokens and cache are the same tensors in every step, so that a replay makes no
    objects.  A sampler that reads the logits chooses the token outside of the capture.
    """

    def __init__(
        self,
        model: Model,
        cache: Cache,
        sampler: Sampler,
        first: Vector[u32],
        most: int,
    ) -> None:
        """Begin behind a first token; `most` tokens may wait to be read at once."""
        ctx = model.ctx
        self._cache = cache
        self._sampler = sampler
        self._ids = ctx.zeros(1, u32)
        self._ids.copy_from(first)
        self._slots = cycle([ctx.zeros(1, u32) for _ in range(most)])
        self._is_whole = not isinstance(sampler, Nucleus)
        self._draws = isinstance(sampler, Drawn)
        with ctx.capture() as self._captured:
            place = self._captured.scalar("place", 0) if self._draws else 0
            self._logits = model.next_logits(self._ids, cache)
            if self._is_whole:
                sampler(self._logits, place, out=self._ids)

    def next(self, place: int) -> Vector[u32]:
        """Record a step; return its token, which is kept for a few steps.

        Raises:
            ModelError: If the cache has no room.
        """
        self._cache.advance(1)
        self._captured.replay(**({"place": place} if self._draws else {}))
        if not self._is_whole:
            self._sampler(self._logits, place, out=self._ids)
        token = next(self._slots)
        token.copy_from(self._ids)
        return token

    def close(self) -> None:
        """Give the memory back that the capture keeps."""
        self._captured.close()
