"""The part of a tiled product that one invocation keeps in registers.

Invocation (column, row) of a tile computes the rows `4 row` to `4 row + 3` of each block
of rows, and as many neighbouring columns of each block of columns.  With 8 x 8 sums, and 16
rows of invocations, invocation row 1 has the rows 4 to 7 and 68 to 71:

    rows of a tile      0 .. 3   4 .. 7   ...  60 .. 63    64 .. 67   68 .. 71  ...
    row of invocations    0        1      ...    15           0          1      ...
                        ├───────── block 0 ────────┤       ├───────── block 1 ──────

The accumulators are the vectors `acc_0_0` to `acc_7_1`: of row 0 to 7, and of four columns of
block 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, final

from kerngen.schedule.contraction import LEFT, RIGHT, Contraction
from kerngen.schedule.gemm.slices import Slices
from kerngen.schedule.gemm.tiling import GROUP, VECTOR, Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t


class Factor(Protocol):
    """A tile of a factor in workgroup memory, in blocks of vectors for each term."""

    @property
    def name(self) -> str:
        """The name of the registers into which vectors of the factor are read."""
        ...

    @property
    def blocks(self) -> int:
        """How many vectors an invocation reads of the factor, for each term."""
        ...

    @property
    def counter(self) -> str:
        """The name of the variable that counts the terms."""
        ...

    def tile(self, buffer: t.Expr | None) -> t.Expr:
        """Return the tile's variable; of two buffered tiles, the one of number `buffer`."""
        ...

    def vector_of(self, line: t.Expr, block: int, at: t.Expr, term: t.Expr) -> t.Expr:
        """Return the vector that an invocation reads from block `block` of a tile's line."""
        ...


@final
@dataclass(frozen=True, slots=True)
class TermConditions:
    """The conditions under which a term counts, by row and by vector of columns.

    - `rows`: a bool for each row of the invocation, or empty
    - `columns`: a `vec4<bool>` for each vector of four columns, or empty
    """

    rows: tuple[t.Expr, ...] = ()
    columns: tuple[t.Expr, ...] = ()

    def at(self, row: int, vector: int) -> t.Expr | None:
        """Return the condition under which a term is added to the sums of a row and vector.

        `row` and `vector` are numbers within the invocation's tile.  None if it always is.
        """
        if not self.columns:
            return self.rows[row] if self.rows else None
        if not self.rows:
            return self.columns[vector]
        splat = t.Call("vec4<bool>", (self.rows[row],))
        return t.Binary("&", splat, self.columns[vector])


@final
class RegisterTile:
    """The accumulators of one invocation, and the WGSL of the arithmetic on them."""

    def __init__(
        self,
        builder: ShaderBuilder,
        tiling: Tiling,
        found: Contraction,
        left: Factor,
        right: Factor,
        name: str = "acc",
        *,
        gaps: tuple[int, int] = (1, 1),
        slices: Slices | None = None,
    ) -> None:
        """Name the accumulators: one vector per row and four columns.

        The four rows of a block lie `gaps[0]` apart in the tile, the four columns of a
        vector `gaps[1]`: those are the gaps of the operands (`Operand.spreads`).
        With `slices`, this invocation adds the terms of one of them.
        """
        self._slices = slices
        self._row_gap, self._column_gap = gaps
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
            (r, v): t.Ident(builder.fresh(f"{name}_{r}_{v}" if many else f"{name}_{r}"))
            for r in self._rows
            for v in self._vectors
        }
        self._repeated: dict[
            tuple[tuple[t.Ident, ...], TermConditions], list[t.Stmt]
        ] = {}

    def place(self) -> list[t.Stmt]:
        """Return `let`s of this invocation's column and row in the tile."""
        sliced = self._slices.place() if self._slices else []
        column, row = self.own_place()
        named = [t.Let(self._column.name, column), t.Let(self._row.name, row)]
        turned = self._slices.turn(self._row, self._column) if self._slices else []
        return [*sliced, *named, *turned]

    def put(self, column: t.Ident, row: t.Ident) -> None:
        """Use the column and row that another register tile's `place` has named."""
        self._column, self._row = column, row

    def row_of(self, r: int) -> list[t.Ident]:
        """Return the accumulators of row `r` of this invocation, side by side."""
        return [self._sums[r, v] for v in self._vectors]

    def own_place(self) -> tuple[t.Expr, t.Expr]:
        """Return this invocation's column and row among the invocations of the tile."""
        t_, lane = self._tiling, self._builder.lane
        if self._slices:
            lane = self._slices.lane
        # Invocations of a subgroup form a block, not a line, so that they read few
        # different vectors of the tiles: 8 columns and 4 rows take 12, a line of 32 takes 33.
        across = t_.columns // t_.lane_columns
        group, within = lane // GROUP, lane % GROUP
        column = group % across * t_.lane_columns + within % t_.lane_columns
        row = group // across * t_.lane_rows + within // t_.lane_columns
        return column, row

    def declare(self, *, in_loop: bool = False) -> list[t.Stmt]:
        """Return declarations of the accumulators, with the neutral value of the reduction.

        WGSL sets variables without a value to zero.  In a loop, naga 29 does so only in the
        first iteration: with `in_loop` they are assigned the value.
        """
        kind = self.found.kind
        zeroed = kind == "sum" and not in_loop
        start = None if zeroed else self._identity()
        type_ = "" if start else wgsl_type(self.found.type, LANES)
        return [t.Var(total.name, start, type_) for total in self._sums.values()]

    def _identity(self) -> t.Expr:
        return identity(self._builder, self.found.kind, self.found.type, LANES)

    def results(self) -> Iterator[tuple[t.Expr, list[t.Expr], t.Ident]]:
        """Yield for each accumulator its row and its columns in the tile, and the variable."""
        for (r, v), total in self._sums.items():
            yield self.tile_row(r), self.tile_columns(v), total

    @property
    def totals(self) -> list[t.Expr]:
        """All accumulators, those of a row side by side."""
        return [self._sums[r, v] for r in self._rows for v in self._vectors]

    @property
    def vectors(self) -> int:
        """How many vectors of four columns an invocation has of each row."""
        return len(self._vectors)

    def tile_row_of(self, line: t.Expr) -> t.Expr:
        """Return where row `line` of this invocation is in the tile."""
        scale = VECTOR if self._row_gap == 1 else 1
        row = self._row * scale + (line // VECTOR) * (self._tiling.rows * scale)
        return row + line % VECTOR * self._row_gap

    def tile_columns_of(self, vector: t.Expr) -> list[t.Expr]:
        """Return where the four columns of vector `vector` of a row are in the tile."""
        scale = VECTOR if self._column_gap == 1 else 1
        first = self._column * scale + vector * (self._tiling.columns * scale)
        return [first + n * self._column_gap for n in range(VECTOR)]

    def tile_vector_of(self, vector: t.Expr) -> t.Expr:
        """Return the number, within its row of the tile, of this invocation's vector `vector`."""
        return self._column + vector * self._tiling.columns

    def tile_row(self, r: int) -> t.Expr:
        """Return where row `r` of this invocation is in the tile."""
        block, within = divmod(r, VECTOR)
        if self._row_gap > 1:
            return self._row + (block * self._tiling.rows + within * self._row_gap)
        return self._row * VECTOR + (block * self._tiling.rows * VECTOR + within)

    def tile_columns(self, v: int) -> list[t.Expr]:
        """Return the four columns in the tile of this invocation's vector `v`."""
        if self._column_gap > 1:
            first = v * self._tiling.columns
            every = range(first, first + VECTOR * self._column_gap, self._column_gap)
            return [self._column + n for n in every]
        first = v * self._tiling.columns * VECTOR
        return [self._column * VECTOR + (first + n) for n in range(VECTOR)]

    def accumulate(
        self, p: int, buffer: t.Expr | None, left_over: t.Expr | None
    ) -> t.Stmt:
        """Return the block that adds term `p` of a turn to the accumulators.

        With `left_over`, the number of terms that are left, it adds none beyond these.  Rows go
        there and back over the columns, so that neighbouring statements share a factor.  In row
        order, a product on an H200 took 43.9 TFLOP/s and not 47 (decision 11).

            {  // p = 0
                let a_0 = a_tile[0u][0u][row];
                let b_0 = b_tile[0u][0u][column];
                let b_1 = b_tile[0u][1u][column];
                acc_0_0 += a_0.x * b_0;
                acc_0_1 += a_0.x * b_1;
                acc_1_1 += a_0.y * b_1;
                acc_1_0 += a_0.y * b_0;
                ...
            }
        """
        at = self._slices.places if self._slices else (self._row, self._column)
        term = self.first_term + p
        body, terms = self._take(term, at, t.u32(p), buffer, TermConditions())
        if left_over is not None:
            terms = [t.If(term < left_over, (*terms,))]
        return t.Block(f"{self._left.counter} = {p}", (*body, *terms))

    def accumulate_some(
        self, term: t.Expr, buffer: t.Expr | None, kept: TermConditions
    ) -> list[t.Stmt]:
        """Return statements that add a term of a turn where the conditions `kept` hold."""
        at = self._row, self._column
        body, terms = self._take(term, at, term, buffer, kept)
        return body + terms

    @property
    def first_term(self) -> t.Expr:
        """The number of this invocation's first term in each turn."""
        return self._slices.first_term if self._slices else t.ZERO

    def _take(
        self,
        term: t.Expr,
        at: tuple[t.Expr, t.Expr],
        p: t.Expr,
        buffer: t.Expr | None,
        kept: TermConditions,
    ) -> tuple[list[t.Stmt], list[t.Stmt]]:
        """Return the reads of a term's factors, and the additions to the totals.

        The factors are in line `term` of their tiles, at the places `at`, which are XORed with
        the numbers for term `p` (`Factor.vector_of`).
        """
        body: list[t.Stmt] = []
        row, column = at
        left = self._read(self._left, self._left.tile(buffer)[term], row, p, body)
        right = self._read(self._right, self._right.tile(buffer)[term], column, p, body)
        return body, self._terms(left, right, kept)

    def _terms(
        self, left: Sequence[t.Ident], right: Sequence[t.Ident], kept: TermConditions
    ) -> list[t.Stmt]:
        """Return the statements that add a term to each accumulator.

        They are the same for all terms of a turn, and made once, unless they declare names:
        then there are more statements than accumulators.
        """
        key = (*left, *right), kept
        if key not in self._repeated:
            terms = list(self._terms_of(left, right, kept))
            if len(terms) > len(self._sums):
                return terms
            self._repeated[key] = terms
        return self._repeated[key]

    def _terms_of(
        self, left: Sequence[t.Ident], right: Sequence[t.Ident], kept: TermConditions
    ) -> Iterator[t.Stmt]:
        for r in self._rows:
            block, within = divmod(r, VECTOR)
            factor = t.Member(left[block], COMPONENTS[within])
            # There and back: the last column of a row is the first of the next.
            for v in self._vectors if r % 2 == 0 else reversed(self._vectors):
                named: list[t.Stmt] = []
                term = self._term(factor, right[v], named)
                if (condition := kept.at(r, v)) is not None:
                    term = t.call("select", self._identity(), term, condition)
                yield from named
                yield accumulate(self.found.kind, self._sums[r, v], term)

    def _term(self, left: t.Expr, right: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return the four terms of one row's factor and those of four columns."""
        lowerer = Lowerer(self._builder, {}, block, label="term")
        lowerer.locals[LEFT] = Value(left)
        lowerer.locals[RIGHT] = Value(right, wide=True)
        return lowerer.widen(lowerer.lower(self.found.term), self.found.type)

    def _read(
        self, operand: Factor, line: t.Expr, at: t.Expr, p: t.Expr, body: list[t.Stmt]
    ) -> list[t.Ident]:
        """Name this invocation's vector of each block of a tile's line, of term `p`."""
        names = [
            t.Ident(self._builder.name(f"{operand.name}_{block}", "fragment"))
            for block in range(operand.blocks)
        ]
        body += [
            t.Let(x.name, operand.vector_of(line, block, at, p))
            for block, x in enumerate(names)
        ]
        return names
