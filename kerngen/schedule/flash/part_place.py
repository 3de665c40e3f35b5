"""Which part of the keys, rows and columns a workgroup of few queries has, as names in WGSL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.plan.size import Literal, Size, Symbol
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.flash.key_bounds import KeyBounds
from kerngen.schedule.flash.key_split import KEYS, KeySplit
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.sizes import to_wgsl
from kerngen.shader import tree as t


def name_counts(
    s: ShaderBuilder, body: list[t.Stmt], split: KeySplit
) -> dict[Size, t.Expr]:
    """Name the counts of a split, from that of a group's heads to that of the parts.

    Returns each as an expression of the shader.
    """
    sizes = {
        "tile_columns": split.column_tiles,
        "rows": split.rows,
        "row_tiles": split.row_tiles,
        "tiles": split.tiles,
        "parts": split.parts,
    }
    if split.heads is not None:
        sizes = {"heads": split.heads.size, "head_groups": split.heads.count, **sizes}
    named: dict[Size, t.Expr] = {}
    for name, size in sizes.items():
        if size not in named:
            value = to_wgsl(size, s, named)
            plain = isinstance(size, Literal | Symbol)
            named[size] = value if plain else s.let(body, name, value)
    return named


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

        A workgroup's number is that of a tile of columns, of four rows, of a group of heads, of
        the other batch indices, and then of a part, the first one changing fastest:

            let part = group / tiles;
            let tile = group % tiles;
            let first_column = tile % tile_columns * 128u;
            let first_row = tile / tile_columns % row_tiles * 4u;
            let first_head = tile / (tile_columns * row_tiles) % head_groups * heads;

        No key is read before these are known, and a division takes about 0.05 us on an H200: so
        none of them waits for another, as `tile / tile_columns / row_tiles` would.
        """
        s, found, split = self.builder, self.found, self.split
        counts = name_counts(s, self.body, split)
        columns, row_tiles = counts[split.column_tiles], counts[split.row_tiles]
        self.parts = counts[split.parts]
        group = self.let("group", linear_group(s))
        self.part = self.let("part", group // counts[split.tiles])
        self.body.append(t.If(self.part >= self.parts, (t.Return(),)))
        tile = self.let("tile", group % counts[split.tiles])
        self.first_column = self.let("first_column", tile % columns * split.columns)
        first_row = tile // columns % row_tiles * VECTOR
        self._first_row = self.let("first_row", first_row)
        self._row_count = counts[split.rows]
        self._head: t.Expr = t.ZERO
        inner = columns * row_tiles
        if split.heads is not None:
            count, size = counts[split.heads.count], counts[split.heads.size]
            self._head = self.let("first_head", tile // inner % count * size)
            inner = inner * count
        outer = self.let("outer", tile // inner)
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
