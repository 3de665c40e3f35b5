"""Buffers that stay between calls."""

from __future__ import annotations

import math
from typing import Any, final

from kerngen.runtime import Context, Tensor, Vector, f32
from kerngen.runtime.shapes import Shape


@final
class GrowingBuffer:
    """One buffer of float32 that calls share; it only grows.

    Views of it overlap, so that one call must be done with its view before the next.
    """

    def __init__(self, ctx: Context) -> None:
        """Start without memory."""
        self._ctx = ctx
        self._held: Vector[f32] | None = None

    @property
    def nbytes(self) -> int:
        """The bytes held."""
        return 0 if self._held is None else self._held.nbytes

    def view(self, shape: Shape) -> Tensor[f32, Any]:
        """Return a view from the start of the buffer, with any contents."""
        count = math.prod(shape)
        if self._held is None or self._held.size < count:
            # Given back first: the pool may have room to spare in that very buffer.
            self._held = None
            self._held = self._ctx.empty(count, f32)
        return self._held.rows(0, count).reshape(shape)

    def release(self) -> None:
        """Give the buffer back to the context's pool."""
        self._held = None
