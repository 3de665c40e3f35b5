"""A token at a time: calls that are captured once, and replayed for each token."""

from __future__ import annotations

from typing import final

from examples.qwen3.model import Cache, Model
from examples.qwen3.sampling import Drawn, Nucleus, Sampler
from kerngen.runtime import LateRead, Vector, u32


@final
class Step:
    """The step from a token to the next one; the token stays on the device.

    Position, token and cache are the same tensors in every step, so that a replay makes no
    objects.  A sampler that reads the logits chooses the token outside of the capture.
    """

    def __init__(
        self, model: Model, cache: Cache, sampler: Sampler, first: Vector[u32]
    ) -> None:
        """Begin behind a first token."""
        ctx = model.ctx
        self._cache = cache
        self._sampler = sampler
        self._ids = ctx.zeros(1, u32)
        self._ids.copy_from(first)
        self._is_whole = not isinstance(sampler, Nucleus)
        self._draws = isinstance(sampler, Drawn)
        with ctx.capture() as self._captured:
            place = self._captured.scalar("place", 0) if self._draws else 0
            self._logits = model.next_logits(self._ids, cache)
            if self._is_whole:
                sampler(self._logits, place, out=self._ids)

    def next(self, place: int) -> LateRead:
        """Begin a step; return its token, to be read late.

        Raises:
            ModelError: If the cache has no room.
        """
        self._cache.advance(1)
        self._captured.replay(**({"place": place} if self._draws else {}))
        if not self._is_whole:
            self._sampler(self._logits, place, out=self._ids)
        return self._ids.begin_read()

    def close(self) -> None:
        """Give the memory back that the capture keeps."""
        self._captured.close()
