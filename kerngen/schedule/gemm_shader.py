"""The shader of strategy `gemm`.

A workgroup computes a tile of the result.  Each turn of its loop brings `k` terms of both
operands into workgroup memory; the next turn's operands are loaded before this turn's
arithmetic.  Accumulators are named vectors in unrolled code.  The steps of the stage,
activation and bias included, are done by the function `finish`; where the terms are split,
a second dispatch does them (`gemm_parts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Expr, Index
from kerngen.plan.size import ceil_div
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.contraction import (
    Contraction,
    product_of,
    tile_axis,
)
from kerngen.schedule.cooperation import counted_terms, reduction_label, reduction_of
from kerngen.schedule.gemm_parts import TermSplit, keep_total
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.operand import Operand
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader
from kerngen.schedule.register_tile import RegisterTile
from kerngen.schedule.sizes import domain_size, to_wgsl
from kerngen.schedule.steps import (
    tensors_in_runs,
    vector_tensors,
    write_steps,
)
from kerngen.schedule.task import Task
from kerngen.schedule.tiling import VECTOR, Tiling
from kerngen.schedule.values import COMPONENTS, LANES, Value
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t


def wide_tensors(found: Contraction, row: Index) -> set[str]:
    """Return the tensors that the factors of a product read in vectors."""
    names: set[str] = set()
    for factor, own in ((found.left, row), (found.right, found.column)):
        names |= tensors_in_runs((factor,), tile_axis(factor, found.last, own))
    return names


@final
@dataclass
class GemmShader:
    """Writes one shader; what is `whole` needs no care at the ends of vectors."""

    task: Task
    tiling: Tiling
    whole: bool
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        found, self.row = product_of(self.task)
        self.column, self.over = found.column, found.over
        own = (self.row, self.column)
        self.batch = tuple(index for index in self.task.domain if index not in own)
        self.split = TermSplit.of(self.task, self.tiling)
        self.builder = ShaderBuilder(self.task, self._lanes(found))
        t_ = self.tiling
        left = t_.micro_m // VECTOR, t_.rows
        right = t_.micro_n // VECTOR, t_.columns
        self.left = self._operand(found.left, self.row, "a", *left)
        self.right = self._operand(found.right, self.column, "b", *right)
        self.registers = RegisterTile(
            self.builder, self.tiling, found, self.left, self.right
        )
        self.part: t.Expr = t.ZERO
        self.parts: t.Expr = t.ONE
        self.begin: t.Expr = t.ZERO
        self.end = self.builder.size(self.over)

    def _lanes(self, found: Contraction) -> dict[str, int]:
        """Bind as vectors what whole vectors read and write in runs."""
        if not self.whole:
            return {}
        wide = wide_tensors(found, self.row)
        wide |= vector_tensors(self.task.stage, self.task.values, self.column)
        if self.split.possible:
            wide.add(self.task.scratch_name("parts"))
        return dict.fromkeys(wide, LANES)

    def _operand(
        self, factor: Expr, own: Index, name: str, blocks: int, across: int
    ) -> Operand:
        return Operand(
            self.builder,
            factor,
            own,
            self.over,
            name,
            blocks,
            across,
            self.tiling,
            self.whole,
        )

    def shader(self) -> Shader:
        """Return the whole shader."""
        t_ = self.tiling
        batch = self._place_tile()
        self.body += self.registers.place()
        for operand in (self.left, self.right):
            self.body += operand.place(batch)
        self.body += [t.Blank(), *self.registers.declare()]
        self.body += [t.Blank(), *self._loop()]
        self.body += [t.Blank(), *self._finish(batch)]
        return self.builder.finish(
            self.body,
            groups=self.split.groups,
            workgroup_size=t_.invocations,
            summary=self._summary(),
            variant="" if self.whole else "edge",
            terms=counted_terms(reduction_of(self.task)),
            trips=ceil_div(domain_size(self.over), t_.k),
        )

    def _summary(self) -> str:
        t_ = self.tiling
        tile = (
            f"one workgroup per {t_.m} x {t_.n} tile, "
            f"{t_.micro_m} x {t_.micro_n} per invocation"
        )
        if not self.split.possible:
            return f"{tile}."
        return (
            f"first of two dispatches: {tile}, at most {t_.split} parts of the terms."
        )

    # Where this workgroup works

    def _place_tile(self) -> dict[Index, t.Expr]:
        """Name the batch indices, the tile's first row and column, and its terms."""
        s = self.builder
        group, rows, columns = (
            t.Ident(s.fresh(name)) for name in ("group", "tile_rows", "tile_columns")
        )
        tiles = s.size(self.batch) * rows * columns
        tile_rows, tile_columns = self.split.tiled_axes
        self.body += [
            t.Let(group.name, linear_group(s)),
            t.Let(rows.name, to_wgsl(tile_rows, s)),
            t.Let(columns.name, to_wgsl(tile_columns, s)),
        ]
        tile = self._place_part(group, tiles)
        at = unravel(s, self.body, self.batch, tile // columns // rows)
        tile_row = tile // columns % rows if self.batch else tile // columns
        self.left.origin = self._let("tile_row", tile_row * self.tiling.m)
        self.right.origin = self._let("tile_column", tile % columns * self.tiling.n)
        return at

    def _place_part(self, group: t.Expr, tiles: t.Expr) -> t.Expr:
        """Name this workgroup's terms; return the number of its tile."""
        s = self.builder
        if not self.split.possible:
            self.body.append(t.If(group >= tiles, (t.Return(),)))
            return group
        named = self.split.name(s, self.body, {self.split.tiles: tiles})
        self.parts, terms = named[self.split.count], named[self.split.part_terms]
        self.body.append(t.If(group >= tiles * self.parts, (t.Return(),)))
        self.part = self._let("part", group % self.parts)
        self.begin = self._let("begin", self.part * terms)
        self.end = self._let("end", t.call("min", self.begin + terms, self.end))
        return self._let("tile", group // self.parts)

    def _let(self, wanted: str, value: t.Expr) -> t.Ident:
        name = self.builder.fresh(wanted)
        self.body.append(t.Let(name, value))
        return t.Ident(name)

    # The product

    def _loop(self) -> list[t.Stmt]:
        """Write the loop over the terms, with one tile of each operand or with two."""
        operands = (self.left, self.right)
        declared = [stmt for operand in operands for stmt in operand.declare()]
        begin = self._fetch(self.begin)
        if not self.whole:
            begin = [t.If(self.begin < self.end, (*begin,))]
        turn = self._turn_of_two if self.tiling.buffers > 1 else self._turn
        return [*declared, *begin, *turn(t.Ident(self.builder.fresh("first")))]

    def _turn(self, first: t.Ident) -> list[t.Stmt]:
        following = t.Ident(self.builder.fresh("following"))
        body = [
            *self._stage(first, None),
            t.BARRIER,
            t.Let(following.name, self._following(first)),
            *self._fetch(following),
            *self._accumulate(first, None),
            t.BARRIER,
        ]
        return [self._over_terms(first, body)]

    def _turn_of_two(self, first: t.Ident) -> list[t.Stmt]:
        """Fill one tile while the other is in use."""
        buffer = t.Ident(self.builder.fresh("buffer"))
        following = t.Ident(self.builder.fresh("following"))
        body = [
            t.Let(following.name, self._following(first)),
            *self._fetch(following),
            *self._accumulate(first, buffer),
            t.Assign(buffer, t.Binary("-", t.ONE, buffer)),
            *self._stage(following, buffer),
            t.BARRIER,
        ]
        return [
            t.Var(buffer.name, t.ZERO),
            *self._stage(self.begin, buffer),
            t.BARRIER,
            self._over_terms(first, body),
        ]

    def _over_terms(self, first: t.Ident, body: list[t.Stmt]) -> t.Stmt:
        begin, end = self.begin, self.end
        return t.count_up(first.name, begin, end, self.tiling.k, *body)

    def _stage(self, first: t.Expr, buffer: t.Expr | None) -> list[t.Stmt]:
        """Store the terms from `first` on to the tiles; terms beyond the end are 0."""
        operands = (self.left, self.right)
        stores = [stmt for operand in operands for stmt in operand.stage(buffer)]
        if self.whole or not self.registers.found.is_product:
            return stores
        left = t.Ident(self.builder.fresh("left"))
        cleared = [stmt for operand in operands for stmt in operand.clear(left)]
        beyond = first + self.tiling.k > self.end
        clear = t.If(
            beyond, (t.Let(left.name, t.Binary("-", self.end, first)), *cleared)
        )
        return [clear, *stores]

    def _fetch(self, first: t.Expr) -> list[t.Stmt]:
        return [*self.left.fetch(first), *self.right.fetch(first)]

    def _following(self, first: t.Expr) -> t.Expr:
        """Return the first term of the next turn; behind the last one, any will do."""
        following = first + self.tiling.k
        if not self.whole:
            return following
        return t.call("min", following, t.Binary("-", self.end, t.u32(self.tiling.k)))

    def _accumulate(self, first: t.Expr, buffer: t.Expr | None) -> list[t.Stmt]:
        left_over = None
        if not self.whole and not self.registers.found.is_product:
            left_over = t.Binary("-", self.end, first)
        terms = range(self.tiling.k)
        return [self.registers.accumulate(p, buffer, left_over) for p in terms]

    # The result

    def _finish(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Hand every accumulator to the function that does the stage's steps."""
        finish = self._declare_finish()
        calls: list[t.Stmt] = []

        def call(i: t.Expr, j: t.Expr, total: t.Expr) -> None:
            at = {
                **batch,
                self.row: self.left.origin + i,
                self.column: self.right.origin + j,
            }
            place = (at[index] for index in self.task.domain)
            part = (self.part, self.parts) if self.split.possible else ()
            calls.append(t.Evaluate(t.call(finish, *part, *place, total)))

        for i, columns, total in self.registers.results():
            if self.whole:
                call(i, columns[0], total)
                continue
            for j, component in zip(columns, COMPONENTS, strict=True):
                call(i, j, t.Member(total, component))
        return calls

    def _declare_finish(self) -> str:
        """Declare the function that takes one total, or with whole vectors four."""
        s = self.builder
        lanes = LANES if self.whole else 1
        name = s.fresh("finish")
        at = {index: t.Ident(s.name(index.name)) for index in self.task.domain}
        value = t.Ident(
            s.fresh(f"{reduction_label(self.task)}_{self.registers.found.kind}")
        )
        body: list[t.Stmt] = [self._leave_outside(at)]
        inputs = [(i.name, "u32") for i in at.values()]
        about = f"What becomes of {'four neighbouring totals of a row' if self.whole else 'one total'}"
        if self.split.possible:
            part, parts = (t.Ident(s.fresh(f"of_{name}")) for name in ("part", "parts"))
            inputs = [(part.name, "u32"), (parts.name, "u32"), *inputs]
            keep = keep_total(s, part, at, value, lanes)
            body.append(t.If(parts > 1, (keep, t.Return())))
            about += "; those of several parts are kept"
        lowerer = Lowerer(s, {**at}, body, vector=self.column if self.whole else None)
        lowerer.reduced[reduction_of(self.task)] = Value(value, wide=self.whole)
        write_steps(lowerer, self.task.stage)
        type_ = wgsl_type(self.registers.found.type, lanes)
        signature = (*inputs, (value.name, type_))
        s.declare(
            f"function {name}",
            wgsl.Function(name, signature, "", tuple(body), f"{about}."),
        )
        return name

    def _leave_outside(self, at: dict[Index, t.Ident]) -> t.Stmt:
        bounds = (
            at[x] >= self.builder.extent(x.extent) for x in (self.row, self.column)
        )
        return t.If(t.any_of(*bounds), (t.Return(),))
