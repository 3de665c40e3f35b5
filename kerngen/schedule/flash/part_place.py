"""Which part of the keys, rows and columns a workgroup of few queries has, as names in WGSL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.flash.key_bounds import KeyBounds
from kerngen.schedule.flash.key_split import KEYS, KeySplit
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.sizes import to_wgsl
from kerngen.shader import tree as t


@final
@dataclass
class PartPlace:
    """The place of a workgroup: statements that name it are appended to `body`.

    - `parts`, `part`: how many parts the keys have, and the number of the workgroup's
    - `begin`, `end`: the first key of all parts, and the one behind the last
    - `first_column`: the first of its columns of values
    - `rows`: the indices of each of its four rows; `shared`: those that all rows have alike
    """

    builder: ShaderBuilder
    found: Attention
    split: KeySplit
    body: list[t.Stmt]

    def __post_init__(self) -> None:
        """Write the place.

        A workgroup's number is that of a part, then of a tile of columns, of four rows, of a
        group of heads, and of the other batch indices, the first one changing fastest:

            let tile = group / parts;
            let part = group % parts;
            let first_column = tile % tile_columns * 128u;
            let first_row = tile / tile_columns % row_tiles * 4u;
        """
        s, found, split = self.builder, self.found, self.split
        self.parts = self.let("parts", to_wgsl(split.parts, s))
        group = self.let("group", linear_group(s))
        # The part, and then column, rows, head and batch are taken off the number in turn.
        rest: t.Expr = self.let("tile", group // self.parts)
        self.part = self.let("part", group % self.parts)
        extent = s.extent(found.column.extent)
        columns = (extent + (split.columns - 1)) // split.columns
        if isinstance(found.column.extent, str):
            columns = self.let("tile_columns", columns)
        self.first_column = self.let("first_column", rest % columns * split.columns)
        rest = rest // columns
        size = self._heads_size()
        self._row_count = s.extent(found.row.extent) * size
        row_tiles = self.let("row_tiles", (self._row_count + (VECTOR - 1)) // VECTOR)
        self._first_row = self.let("first_row", rest % row_tiles * VECTOR)
        rest = rest // row_tiles
        self._head: t.Expr = t.ZERO
        if split.heads is not None:
            extent = s.extent(split.heads.index.extent)
            count = self.let("groups", (extent + size - t.ONE) // size)
            self._head = self.let("first_head", rest % count * size)
            rest = rest // count
        outer = self.let("outer", rest)
        limit = s.size(split.outer)
        self.body.append(t.If(outer >= limit, (t.Return(),)))
        self._at = unravel(s, self.body, split.outer, outer) if split.outer else {}
        self.shared = dict(self._at)
        if split.heads is not None:
            self.shared[split.heads.index] = self._head
        self.rows = [self.row(n, f"_{n}")[0] for n in range(VECTOR)]
        last = t.Binary("-", s.extent(found.row.extent), t.ONE)
        bounds = KeyBounds.of(found.score, found.row, found.key)
        self.begin, self.end = bounds.write(s, self.body, (t.ZERO, last), KEYS)

    def let(self, wanted: str, value: t.Expr) -> t.Ident:
        """Append a `let` of `value` to the body, named like `wanted`; return its identifier."""
        return self.builder.let(self.body, wanted, value)

    def _heads_size(self) -> t.Expr:
        """Return how many heads share their keys: 1 if each has its own."""
        heads = self.split.heads
        return (
            t.ONE
            if heads is None
            else self.let("heads", to_wgsl(heads.size, self.builder))
        )

    def row(
        self, number: t.Operand, suffix: str = ""
    ) -> tuple[dict[Index, t.Expr], t.Expr]:
        """Name the indices of a row; return them, and the condition that the row exists.

        A row past the last is the last one.  With heads that share keys, the rows are the
        queries of one head after the other.
        """
        s, found, heads = self.builder, self.found, self.split.heads
        place, row = self._first_row + number, dict(self._at)
        near = self.let(f"row{suffix}", t.call("min", place, self._row_count - t.ONE))
        inside = place < self._row_count
        row[found.row] = near
        if heads is not None:
            extent, limit = s.extent(found.row.extent), s.extent(heads.index.extent)
            own = self.let(f"head{suffix}", self._head + near // extent)
            row[found.row] = self.let(f"query{suffix}", near % extent)
            row[heads.index] = self.let(
                f"near_head{suffix}", t.call("min", own, limit - t.ONE)
            )
            inside = t.all_of(inside, own < limit)
        return row, inside

    def number(self, row: dict[Index, t.Expr]) -> t.Expr:
        """Return the number of this part of a row among all parts of all rows."""
        indices = (*self.found.batch, self.found.row)
        place = row_major(
            self.builder, tuple(i.extent for i in indices), [row[i] for i in indices]
        )
        return place * self.parts + self.part
