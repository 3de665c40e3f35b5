"""The tile of weights of strategy `flash`, between the scores and the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.gemm.operand import BANKS
from kerngen.schedule.gemm.tiling import VECTOR, Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.shader import tree as t

_BYTES = 16
"""The size of a `vec4f`."""


@final
@dataclass
class Weights:
    """The tile of weights in workgroup memory: a line per key, of vectors of four rows.

    With 64 rows of which an invocation has 8, for 16 keys at a time:

        var<workgroup> weight_tile: array<array<vec4f, 16>, 16>;      // key, vector of rows

    A register tile multiplies it with the values: it is used in place of the left `Operand`.
    """

    builder: ShaderBuilder
    tiling: Tiling
    lines: int
    key: Index
    name: str = "w"

    def __post_init__(self) -> None:
        """Declare the tile."""
        self.blocks = self.tiling.micro_m // VECTOR
        self.across = self.tiling.rows
        length = self.blocks * self.across
        type_ = f"array<array<vec4f, {length}>, {self.lines}>"
        size = _BYTES * length * self.lines
        self._tile = self.builder.workgroup_array("weight_tile", type_, size)

    @property
    def counter(self) -> str:
        """The name of the variable that counts the keys."""
        return self.key.name

    def tile(self, buffer: t.Expr | None) -> t.Expr:
        """Return the tile's WGSL variable; there is only one `buffer`."""
        del buffer
        return self._tile

    def vector_of(self, line: t.Expr, block: int, at: t.Expr, term: t.Expr) -> t.Expr:
        """Return the element of `line` with the weights of four rows for key number `term`."""
        return self.place(line, block, at, term // VECTOR % self._turn)

    def place(self, line: t.Expr, block: int, at: t.Expr, turn: t.Expr) -> t.Expr:
        """Return the element of `line` for a block of four rows, of the invocations' row `at`.

        The place is XORed with `turn`, a part of the line's number: else neighbouring lanes,
        which store to adjacent lines, would meet in few banks of workgroup memory.
        """
        if turn != t.ZERO:
            at = t.Binary("^", at, turn)
        return line[at + block * self.across]

    @property
    def _turn(self) -> int:
        return min(self.across, BANKS)

    def own(self, line: t.Expr, column: t.Expr, row: t.Expr, block: int) -> t.Expr:
        """Return the element in which an invocation stores four rows' weights for a key."""
        return self.place(self._tile[line], block, row, column % self._turn)
