"""Buffers that are reused from call to call."""

from __future__ import annotations

import math
from typing import Any, final

from kerngen.runtime import Context, Tensor, Vector, f32
from kerngen.runtime.values.shapes import Shape


@final
class GrowingBuffer:
    """A float32 buffer that calls share, and that grows when needed.

    Views of it overlap, so that one call must be done with its view before the next.
    """

    def __init__(self, ctx: Context) -> None:
        """Start without memory."""
        self._ctx = ctx
        self._held: Vector[f32] | None = None

    @property
    def nbytes(self) -> int:
        """The size of the buffer in bytes."""
        held = self._held
        return 0 if held is None else held.nbytes

    def view(self, shape: Shape) -> Tensor[f32, Any]:
        """Return a view from the start of the buffer, with any contents."""
        count = math.prod(shape)
        held = self._held
        if held is None or held.size < count:
            # Given back first: the pool may have room to spare in that very buffer.
            self._held = held = None
            self._held = held = self._ctx.empty(count, f32)
        return held.rows(0, count).reshape(shape)

    def release(self) -> None:
        """Return the buffer to the context's pool, once no view is left.

        Another thread may be in the middle of a call.
        """
        self._held = None
