"""Arenas: large buffers, of which the matrices of all layers are views.

wgpu takes a driver's memory in blocks of up to 256 MiB, and a larger buffer exactly.  36
matrices of 100 MB, each a buffer of its own, left a quarter of their blocks empty: 1.4 GB.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, final

from kerngen.runtime import Context, Matrix, Tensor, Vector, f16, f32, i4, i8

Shape: TypeAlias = tuple[int, ...]
Kind: TypeAlias = tuple[Shape, Any]
"""A shape, and the type of its elements."""

LARGE: Final = 1 << 29
"""The most bytes of a buffer: twice a block, so that equal parts are no smaller than one."""

BITS: Final = {f32: 32, f16: 16, i8: 8, i4: 4}
GRAIN: Final = 512
"""Tensors begin at multiples of so many elements, 256 bytes or more: any adapter binds there."""

WORD: Final = 8
"""Elements that are whole words in all types; what ends within one is a buffer of its own."""


@final
class Arenas:
    """Memory for tensors of some kinds, as many of each as there are layers.

    Those of a type share buffers of about equal sizes, one layer after the other:

        Arenas(ctx, 36, [((6144, 2560), f16), ((2560, 4096), f16)])
    """

    def __init__(self, ctx: Context, layers: int, kinds: Iterable[Kind]) -> None:
        """Give each tensor its place; buffers are made when the first of theirs is."""
        self._ctx = ctx
        self._places: defaultdict[Kind, deque[_Place]] = defaultdict(deque)
        of_types: defaultdict[Any, list[Shape]] = defaultdict(list)
        for shape, element in kinds:
            if math.prod(shape) % WORD == 0:
                of_types[element].append(shape)
        for element, shapes in of_types.items():
            self._divide(element, shapes * layers)

    def _divide(self, element: Any, shapes: list[Shape]) -> None:
        """Divide tensors among buffers; a short last one would lie in a block.

        Where the adapter binds less than `LARGE`, several buffers would be shorter than a
        block: then each tensor is one, of which more fit in a block.
        """
        rooms = [_room(shape) for shape in shapes]
        bound = self._ctx.max_tensor_bytes
        if bound < LARGE and sum(rooms) * BITS[element] // 8 > bound:
            return
        most = min(LARGE, bound) * 8 // BITS[element]
        # A buffer ends with the tensor that passes its share of the whole.
        parts = -(-sum(rooms) // max(most + GRAIN - max(rooms), GRAIN))
        arena, end, placed = _Arena(), sum(rooms) / parts, 0
        for shape, room in zip(shapes, rooms, strict=True):
            if placed >= end or arena.size + room > most:
                arena, end = _Arena(), max(end, placed) + sum(rooms) / parts
            self._places[shape, element].append((arena, arena.size))
            arena.size += room
            placed += room

    def matrix(self, array: Any, element: Any) -> Matrix[Any]:
        """Return a copy of an array of rank 2, as `Context.matrix` does."""
        made = self.empty(array.shape, element)
        made.copy_from(array)
        return made

    def empty(self, shape: Shape, element: Any) -> Tensor[Any, Any]:
        """Return a tensor with any contents; of a kind without room, a buffer of its own."""
        places = self._places[shape, element]
        if not places:
            return self._ctx.empty(shape, element)
        arena, start = places.popleft()
        if arena.memory is None:
            arena.memory = self._ctx.empty(arena.size, element)
        return arena.memory[start : start + math.prod(shape)].reshape(shape)


@final
class _Arena:
    """A buffer that several tensors share, of `size` elements."""

    def __init__(self) -> None:
        self.size = 0
        self.memory: Vector[Any] | None = None


_Place: TypeAlias = tuple[_Arena, int]
"""Where a tensor is: its arena, and its first element."""


def _room(shape: Shape) -> int:
    """Return how many elements a tensor takes up."""
    return max(-(-math.prod(shape) // GRAIN), 1) * GRAIN
