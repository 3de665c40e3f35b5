"""The part of a tiled product that one invocation keeps in registers.

Invocation (column, row) of a tile computes rows `4 row + r` of each block of rows, and
columns that depend on how the right tile lies: neighbours, read as one vector, or every
`columns`-th, so that the vectors read along the reduction fall into different banks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.contraction import LEFT, RIGHT, Contraction
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.operand import Operand
from kerngen.schedule.tiling import GROUP, VECTOR, Tiling
from kerngen.schedule.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t


@final
class RegisterTile:
    """Accumulators, and the arithmetic on them."""

    def __init__(
        self,
        builder: ShaderBuilder,
        tiling: Tiling,
        found: Contraction,
        left: Operand,
        right: Operand,
    ) -> None:
        """Name the accumulators: one vector per row and four columns."""
        self.found = found
        self._builder = builder
        self._tiling = tiling
        self._left = left
        self._right = right
        self._column = t.Ident(builder.fresh("column"))
        self._row = t.Ident(builder.fresh("row"))
        self._rows = range(tiling.micro_m)
        self._vectors = range(tiling.micro_n // VECTOR)
        many = len(self._vectors) > 1
        self._sums = {
            (r, v): t.Ident(builder.fresh(f"acc_{r}_{v}" if many else f"acc_{r}"))
            for r in self._rows
            for v in self._vectors
        }

    def place(self) -> list[t.Stmt]:
        """Name this invocation's place among the columns and rows of the tile."""
        t_, lane = self._tiling, self._builder.lane
        across = t_.columns // t_.lane_columns
        group, within = lane // GROUP, lane % GROUP
        column = group % across * t_.lane_columns + within % t_.lane_columns
        row = group // across * t_.lane_rows + within // t_.lane_columns
        return [t.Let(self._column.name, column), t.Let(self._row.name, row)]

    def declare(self) -> list[t.Stmt]:
        """Declare the accumulators; where nothing is said, WGSL sets them to zero."""
        kind = self.found.kind
        start = None if kind == "sum" else identity(kind, self.found.type, LANES)
        type_ = wgsl_type(self.found.type, LANES)
        return [t.Var(total.name, start, type_) for total in self._sums.values()]

    def results(self) -> Iterator[tuple[t.Expr, list[t.Expr], t.Ident]]:
        """Yield each accumulator with its row and its four columns in the tile."""
        for (r, v), total in self._sums.items():
            yield self._tile_row(r), self._tile_columns(v), total

    def _tile_row(self, r: int) -> t.Expr:
        block, within = divmod(r, VECTOR)
        return self._row * VECTOR + (block * self._tiling.rows * VECTOR + within)

    def _tile_columns(self, v: int) -> list[t.Expr]:
        columns = self._tiling.columns
        numbers = range(VECTOR)
        if self._right.runs_along_reduction:
            return [self._column + (v * VECTOR + n) * columns for n in numbers]
        return [self._column * VECTOR + (v * columns * VECTOR + n) for n in numbers]

    def accumulate(self, p: int, left_over: t.Expr | None) -> t.Stmt:
        """Take four terms, `p` and the next three; only those before `left_over`."""
        body: list[t.Stmt] = []
        left, right = self._read_left(p, body), self._read_right(p, body)
        for q in range(VECTOR):
            terms: list[t.Stmt] = []
            for (r, v), total in self._sums.items():
                term = self._term(left[r, q], right[v, q], terms)
                terms.append(accumulate(self.found.kind, total, term))
            body += terms if left_over is None else [_if(p + q, left_over, terms)]
        name = self._left.counter
        return t.Block(f"{name} = {p} to {p + VECTOR - 1}", tuple(body))

    def _term(self, left: t.Expr, right: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return the term of one row's factor and those of four columns."""
        lowerer = Lowerer(self._builder, {}, block, label="term")
        lowerer.locals[LEFT] = Value(left)
        lowerer.locals[RIGHT] = Value(right, wide=True)
        return lowerer.widen(lowerer.lower(self.found.term), self.found.type)

    def _read_left(self, p: int, body: list[t.Stmt]) -> dict[tuple[int, int], t.Expr]:
        """Read the left fragment; return the element of row r and term p + q."""
        tile, found = self._left.tile, dict[tuple[int, int], t.Expr]()
        if self._left.runs_along_reduction:
            for r in self._rows:
                vector = self._read(
                    f"a_{r}", tile[self._tile_row(r)][p // VECTOR], body
                )
                for q, component in enumerate(COMPONENTS):
                    found[r, q] = t.Member(vector, component)
            return found
        for q in range(VECTOR):
            for block in range(len(self._rows) // VECTOR):
                place = self._row + block * self._tiling.rows
                vector = self._read(f"a_{q}_{block}", tile[p + q][place], body)
                for n, component in enumerate(COMPONENTS):
                    found[block * VECTOR + n, q] = t.Member(vector, component)
        return found

    def _read_right(self, p: int, body: list[t.Stmt]) -> dict[tuple[int, int], t.Expr]:
        """Read the right fragment; return the vector v of columns for term p + q."""
        tile, found = self._right.tile, dict[tuple[int, int], t.Expr]()
        for v in self._vectors:
            if self._right.runs_along_reduction:
                read = [
                    self._read(f"b_{v}_at_{n}", tile[column][p // VECTOR], body)
                    for n, column in enumerate(self._tile_columns(v))
                ]
                for q, component in enumerate(COMPONENTS):
                    parts = tuple(t.Member(vector, component) for vector in read)
                    found[v, q] = self._read(
                        f"b_{q}_{v}", t.Call(self._right.vector_type, parts), body
                    )
                continue
            for q in range(VECTOR):
                place = self._column + v * self._tiling.columns
                found[v, q] = self._read(f"b_{q}_{v}", tile[p + q][place], body)
        return found

    def _read(self, wanted: str, value: t.Expr, body: list[t.Stmt]) -> t.Ident:
        name = self._builder.name(wanted, "fragment")
        body.append(t.Let(name, value))
        return t.Ident(name)


def _if(number: int, left_over: t.Expr, body: list[t.Stmt]) -> t.Stmt:
    return t.If(t.u32(number) < left_over, tuple(body))
