"""What a piece of a prompt computes: two buffers, which the calls of a layer use in turn."""

from __future__ import annotations

from typing import final

from examples.qwen3.config import Config
from kerngen.runtime import Context, Matrix, Tensor3, Vector, f32

PIECE = 512
"""Positions of a prompt that run at once: of a 4B model, 60 MB of activations.

On an H200, 1,024 are 3 % faster; wgpu then takes another block of memory, of 256 MiB.
"""


@final
class Activations:
    """Views of two buffers, for up to `rows` positions.

    A call reads from one buffer and writes to the other, as WebGPU wants it.  New tensors
    for each prompt would leave some of every length behind, as free memory.
    """

    def __init__(self, ctx: Context, config: Config, rows: int) -> None:
        """Make room for the widest of the tensors that share a buffer."""
        self.rows = rows
        self._config = config
        (columns, _), (_, own), (halves, _), (_, hidden) = config.matrices
        self._columns, self._own = columns, own
        self._even = ctx.empty(rows * max(columns, hidden), f32)
        self._odd = ctx.empty(rows * max(own, halves), f32)

    def columns(self, count: int) -> Matrix[f32]:
        """Return queries, keys and values of so many positions, side by side."""
        return _matrix(self._even, count, self._columns)

    def queries(self, count: int) -> Tensor3[f32]:
        """Return queries, turned by their positions."""
        return self._heads(self._odd, count)

    def seen(self, count: int) -> Tensor3[f32]:
        """Return what the attention of the queries is."""
        return self._heads(self._even, count)

    def halves(self, count: int) -> Matrix[f32]:
        """Return what opens, then what passes."""
        return _matrix(self._odd, count, 2 * self._config.hidden)

    def gated(self, count: int) -> Matrix[f32]:
        """Return the product of the halves."""
        return _matrix(self._even, count, self._config.hidden)

    def _heads(self, buffer: Vector[f32], count: int) -> Tensor3[f32]:
        flat = _matrix(buffer, count, self._own)
        return flat.reshape(count, self._config.heads, self._config.head_width)


def _matrix(buffer: Vector[f32], rows: int, columns: int) -> Matrix[f32]:
    return buffer[: rows * columns].reshape(rows, columns)
