"""The result of a tiled product: what becomes of the accumulators of a tile.

Each total is passed to the function `finish`, which does the stage's steps and stores:

    finish(tile_row + row * 4u, tile_column + column, acc_0_0);
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.phases import (
    Phases,
    leave_phase,
    name_lengths,
    phase_names,
)
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.gemm.shares import batch_of
from kerngen.schedule.gemm.stream import (
    keep_total,
    leave_outside,
    side_places,
)
from kerngen.schedule.gemm.tiling import Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import reduction_label, reduction_of
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import places
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

FEW_SUMS: Final = 32
"""Invocations with so many sums or fewer name the places of convolutions' columns for all rows.

With more sums the names take registers that those need.  On an H200, 32 images of 64 x 56 x 56 by
256 kernels of 1 x 1, whose gradient has 4 x 8 sums, take 110 us for the gradient, and 88 with
names; with 8 x 8 sums the convolution takes 198, and 205 with names.
"""

_SIDES: Final = ("row", "column")
"""The names of a place in the result, where a side has several indices."""


@final
@dataclass
class TileResult:
    """Builds the end of a product's shader.

    - `stores_vectors`: whether four neighbouring results are stored together
    - `origin`: the first row and the first column of the tile
    - `whole_tile`: with shares, whether the workgroup has all terms of the tile
    - `slot`: where its partial sums go otherwise
    - `phases`: the phases of the columns, of which a tile has one
    """

    builder: ShaderBuilder
    tiling: Tiling
    registers: RegisterTile
    stores_vectors: bool
    origin: tuple[t.Expr, t.Expr]
    whole_tile: t.Expr
    slot: t.Expr
    phases: Phases | None

    def __post_init__(self) -> None:
        """Find the sides of the result."""
        self.task = self.builder.task
        self.sides = sides_of(self.task)
        found, self.row = product_of(self.task)
        self.column = found.column
        self._joins = any(len(side) > 1 for side in self.sides)

    def write(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Pass every accumulator to the function `finish`, which does the stage's steps.

        In the loop over tiles there is one call, in a loop over the accumulators, as
        SwiftShader takes minutes, and gigabytes, to compile many calls there.  A `switch`
        chooses the accumulator: an array of them, indexed by the loop's counter, would leave
        the registers, and NVIDIA's driver keeps that memory for all lanes that its GPU can
        run: 138 MB on an H200.  With 16 accumulators:

            for (var number = 0u; number < 16u; number += 1u) {
                var total: vec4f;
                switch number { case 0u: { total = acc_0_0; } ... }
                if (whole) { finish(...); }
                if (!whole) { parts[...] = total; }
            }
        """
        finish = self._declare_finish()
        if not self.tiling.stream:
            return self._finish_each(finish, batch)
        s, registers = self.builder, self.registers
        vectors, count = registers.vectors, len(registers.totals)
        number = t.Ident(s.fresh("number"))
        body: list[t.Stmt] = []
        if len(self.sides[1]) == 1 or self.tiling.sums > FEW_SUMS:
            place = number // vectors, number % vectors
            each = self._finish_one(finish, batch, number, place, body)
            return [t.count_up(number.name, 0, t.u32(count), 1, *body, *each)]
        # The indices of a column are found once for all rows, as they take divisions.
        line, vector = (t.Ident(s.fresh(x)) for x in ("line", "vector"))
        each = self._finish_one(finish, batch, number, (line, vector), body)
        own = t.Let(number.name, line * vectors + vector)
        lines = t.count_up(line.name, 0, t.u32(count // vectors), 1, own, *each)
        return [t.count_up(vector.name, 0, t.u32(vectors), 1, *body, lines)]

    def _finish_each(self, finish: str, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Return a call, or four, for each accumulator, in the order of rows.

        If columns have several indices, those of the same columns follow each other.
        """
        body: list[t.Stmt] = []
        results = [*self.registers.results()]
        groups = [[result] for result in results]
        if len(self.sides[1]) > 1:
            own = dict.fromkeys(tuple(columns) for _, columns, _ in results)
            groups = [[x for x in results if (*x[1],) == columns] for columns in own]
        for group in groups:
            columns = [self._column_place(body, column) for column in group[0][1]]
            for row, _, total in group:
                body += self._calls(finish, batch, row, columns, total)
        return body

    def _finish_one(
        self,
        finish: str,
        batch: dict[Index, t.Expr],
        number: t.Expr,
        place: tuple[t.Expr, t.Expr],
        body: list[t.Stmt],
    ) -> list[t.Stmt]:
        """Return the statements for accumulator `number`, which is at a line and vector.

        Statements that name its columns are appended to `body`.
        """
        registers, total = self.registers, t.Ident(self.builder.fresh("total"))
        line, own = place
        row, vector = registers.tile_row_of(line), registers.tile_vector_of(own)
        columns = [self._column_place(body, x) for x in registers.tile_columns_of(own)]
        kept = keep_total(self.builder, self.tiling, self.slot, (row, vector), total)
        calls = (*self._calls(finish, batch, row, columns, total),)
        return [
            t.Var(total.name, type=wgsl_type(registers.found.type, LANES)),
            t.Switch(total, number, (*registers.totals,)),
            t.If(self.whole_tile, calls),
            t.If(t.Unary("!", self.whole_tile), (kept,)),
        ]

    def _column_place(self, body: list[t.Stmt], column: t.Expr) -> list[t.Expr]:
        """Return a column's arguments of `finish`: its place, and its indices if it has several."""
        place = self.origin[1] + column
        columns = self._column_indices
        if len(columns) == 1:
            return [place]
        named = self.builder.let(body, "place", place)
        found = places(self.builder, columns, named)
        indices = (
            self.builder.let(body, f"at_{index.name}", found[index])
            for index in columns
        )
        return [named, *indices]

    @property
    def _column_indices(self) -> tuple[Index, ...]:
        return self.phases.places if self.phases else self.sides[1]

    def _calls(
        self,
        finish: str,
        batch: dict[Index, t.Expr],
        row: t.Expr,
        columns: list[list[t.Expr]],
        total: t.Expr,
    ) -> Iterator[t.Stmt]:
        """Yield the call for a total, or for each of its four components."""
        each = (
            [total] if self.stores_vectors else [t.Member(total, c) for c in COMPONENTS]
        )
        for column, part in zip(columns, each, strict=False):
            at = self.origin[0] + row, column[0]
            others = (*column[1:], *self._phase(), part)
            yield t.Evaluate(t.call(finish, *self._ordered(batch, at), *others))

    def _ordered(
        self, batch: dict[Index, t.Expr], place: tuple[t.Expr, t.Expr]
    ) -> list[t.Expr]:
        """Return the arguments of `finish` for a place: indices, or row and column."""
        if self._joins:
            return [*batch.values(), *place]
        at = {**batch, self.row: place[0], self.column: place[1]}
        return [at[index] for index in self.task.domain]

    def _phase(self) -> list[t.Ident]:
        """Return the names of the tile's phase, along each axis that has phases."""
        return phase_names(self.builder, self.phases) if self.phases else []

    def _name_side(self, wanted: str, side: tuple[Index, ...]) -> t.Ident:
        s = self.builder
        *joined, last = side
        return t.Ident(s.fresh(wanted) if joined else s.name(last.name))

    def _declare_finish(self) -> str:
        """Declare the function `finish` for one total, or for four with whole vectors.

        For `c[i, j] = alpha * sum[p] a[i, p] * b[j, p]` and whole vectors:

            fn finish(i: u32, j: u32, c_sum: vec4f) {
                if (i >= u.m || j >= u.n) {
                    return;
                }
                c[(i * u.n + j) >> 2u] = u.alpha * c_sum;
            }
        """
        s = self.builder
        lanes = LANES if self.stores_vectors else 1
        name = s.fresh("finish")
        batch = {x: t.Ident(s.name(x.name)) for x in batch_of(self.task)}
        row, column = (
            self._name_side(*side) for side in zip(_SIDES, self.sides, strict=True)
        )
        value = t.Ident(
            s.fresh(f"{reduction_label(self.task)}_{self.registers.found.kind}")
        )
        steps: list[t.Stmt] = []
        at: dict[Index, t.Expr] = {**batch, **side_places(s, steps, self.sides[0], row)}
        columns = self._column_indices
        own: dict[Index, t.Expr] = {columns[0]: column}
        if len(columns) > 1:
            own = {index: t.Ident(s.name(index.name)) for index in columns}
        at |= leave_phase(s, self.phases, steps, own) if self.phases else own
        lengths = name_lengths(s, self.phases) if self.phases else []
        lowerer = Lowerer(
            s, at, steps, vector=self.column if self.stores_vectors else None
        )
        lowerer.reduced[reduction_of(self.task)] = Value(
            value, wide=self.stores_vectors
        )
        write_steps(lowerer, self.task.stage)
        body = [*lengths, leave_outside(s, row, column, columns), *steps]
        ordered = self._ordered({**batch}, (row, column))
        if len(columns) > 1:
            ordered += own.values()
        inputs = [(name.name, "u32") for name in ordered if isinstance(name, t.Ident)]
        inputs += [(name.name, "i32") for name in self._phase()]
        about = f"What becomes of {'four neighbouring totals of a row' if self.stores_vectors else 'one total'}"
        type_ = wgsl_type(self.registers.found.type, lanes)
        signature = (*inputs, (value.name, type_))
        s.declare(
            f"function {name}",
            wgsl.Function(name, signature, "", tuple(body), f"{about}."),
        )
        return name
