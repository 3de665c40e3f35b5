"""Arenas: large buffers, of which the matrices of several layers are views.

wgpu takes a driver's memory in blocks of up to 256 MiB, and a larger buffer exactly.  36
matrices of 100 MB, each a buffer of its own, left a quarter of their blocks empty: 1.4 GB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, final

from kerngen.runtime import Context, Matrix, Tensor, f16, f32, i4, i8

Shape: TypeAlias = tuple[int, ...]

LARGE: Final = 1 << 29
"""The most bytes of a buffer: twice a block, so that equal parts are no smaller than one."""

BITS: Final = {f32: 32, f16: 16, i8: 8, i4: 4}
GRAIN: Final = 512
"""Tensors begin at multiples of so many elements, 256 bytes or more: any adapter binds there."""

WORD: Final = 8
"""Elements that are whole words in all types; what ends within one is a buffer of its own."""


@final
class Arenas:
    """Memory for `count` tensors of each shape and type: one for every layer."""

    def __init__(self, ctx: Context, count: int) -> None:
        """Begin without buffers."""
        self._ctx = ctx
        self._count = count
        self._free: dict[tuple[Shape, Any], Iterator[Tensor[Any, Any]]] = {}

    def matrix(self, array: Any, element: Any) -> Matrix[Any]:
        """Return a copy of an array of rank 2, as `Context.matrix` does."""
        made = self.empty(array.shape, element)
        made.copy_from(array)
        return made

    def empty(self, shape: Shape, element: Any) -> Tensor[Any, Any]:
        """Return a tensor with any contents."""
        kind = shape, element
        if kind not in self._free:
            self._free[kind] = self._each(shape, element)
        return next(self._free[kind])

    def _each(self, shape: Shape, element: Any) -> Iterator[Tensor[Any, Any]]:
        """Yield tensors without end; beyond `count`, each is a buffer of its own."""
        size, left = math.prod(shape), self._count
        step = max(-(-size // GRAIN), 1) * GRAIN
        most = min(LARGE, self._ctx.max_tensor_bytes) // (step * BITS[element] // 8)
        while left > 1 and most > 1 and size % WORD == 0:
            # Equal parts: a short last one would lie in a block.
            count = -(-left // -(-left // most))
            whole = self._ctx.empty(count * step, element)
            for start in range(0, count * step, step):
                yield whole[start : start + size].reshape(shape)
            left -= count
        while True:
            yield self._ctx.empty(shape, element)
