"""The shader of strategy `gemm`.

A workgroup computes a tile of the result.  Each turn of its loop brings `k` terms of both
operands into workgroup memory; the next turn's operands are loaded before this turn's
arithmetic.  Accumulators are named vectors in unrolled code.  The steps of the stage,
activation and bias included, are done by the function `finish`; of tiles that several
workgroups share, a second dispatch does them (`gemm_stream.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Expr, Index
from kerngen.plan.size import Size, ceil_div
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.contraction import (
    Contraction,
    product_of,
    tile_axis,
)
from kerngen.schedule.cooperation import counted_terms, reduction_label, reduction_of
from kerngen.schedule.gemm_stream import TermShares, batch_of, keep_total, name_sizes
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
        self.batch = batch_of(self.task)
        self.shares = TermShares.of(self.task, self.tiling)
        self.builder = ShaderBuilder(self.task, self._lanes(found))
        t_ = self.tiling
        left = t_.micro_m // VECTOR, t_.rows
        right = t_.micro_n // VECTOR, t_.columns
        self.left = self._operand(found.left, self.row, "a", *left)
        self.right = self._operand(found.right, self.column, "b", *right)
        self.registers = RegisterTile(
            self.builder, self.tiling, found, self.left, self.right
        )
        self.whole_tile: t.Expr = t.ZERO
        self.slot: t.Expr = t.ZERO
        self.begin: t.Expr = t.ZERO
        self.end = self.builder.size(self.over)

    def _lanes(self, found: Contraction) -> dict[str, int]:
        """Bind as vectors what whole vectors read and write in runs."""
        if not self.whole:
            return {}
        wide = wide_tensors(found, self.row)
        wide |= vector_tensors(self.task.stage, self.task.values, self.column)
        if self.tiling.stream:
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
        shares = self.shares
        body = self._streamed() if t_.stream else self._tile_by_tile()
        return self.builder.finish(
            body,
            groups=shares.groups if t_.stream else shares.tiles,
            workgroup_size=t_.invocations,
            summary=self._summary(),
            variant="" if self.whole else "edge",
            terms=counted_terms(reduction_of(self.task)),
            trips=ceil_div(domain_size(self.over), t_.k),
        )

    def _summary(self) -> str:
        t_ = self.tiling
        tile = f"{t_.m} x {t_.n} tiles, {t_.micro_m} x {t_.micro_n} sums per invocation"
        if not t_.stream:
            return f"one workgroup per tile, {tile}."
        return (
            f"first of two dispatches: {tile}; workgroups share the terms of all tiles."
        )

    # Where this workgroup works

    def _tile_by_tile(self) -> list[t.Stmt]:
        """Compute the tile that has the workgroup's number."""
        s = self.builder
        group = t.Ident(s.fresh("group"))
        axes = zip(("tile_rows", "tile_columns"), self.shares.tiled_axes, strict=True)
        self.body.append(t.Let(group.name, linear_group(s)))
        named = name_sizes(s, self.body, axes)
        tiles = to_wgsl(self.shares.tiles, s, named)
        self.body.append(t.If(group >= tiles, (t.Return(),)))
        self._compute(group, named)
        return self.body

    def _streamed(self) -> list[t.Stmt]:
        """Compute the workgroup's share of the turns of all tiles, tile after tile."""
        s, shares = self.builder, self.shares
        group, turn, end, tile, first, last = (
            t.Ident(s.fresh(name))
            for name in ("group", "turn", "end", "tile", "first_turn", "last_turn")
        )
        rows, columns = shares.tiled_axes
        outer: list[t.Stmt] = [t.Let(group.name, linear_group(s))]
        named = name_sizes(
            s,
            outer,
            (
                ("tile_rows", rows),
                ("tile_columns", columns),
                ("turns", shares.turns),
                ("all_turns", shares.tiles * shares.turns),
                ("share", shares.share),
            ),
        )
        turns, share = named[shares.turns], named[shares.share]
        outer += [
            t.If(group * share >= named[shares.tiles * shares.turns], (t.Return(),)),
            t.Let(
                end.name,
                t.call(
                    "min", group * share + share, named[shares.tiles * shares.turns]
                ),
            ),
        ]
        self.body += [
            t.Let(tile.name, turn // turns),
            t.Let(first.name, turn % turns),
            t.Let(last.name, t.call("min", first + (end - turn), turns)),
        ]
        self.begin = self._let("begin", first * self.tiling.k)
        self.end = self._let(
            "end_term", t.call("min", last * self.tiling.k, s.size(self.over))
        )
        self.whole_tile = self._let("whole_tile", t.Binary("==", last - first, turns))
        self.slot = self._let(
            "slot", group * 2 + t.call("u32", t.Binary("==", first, t.ZERO))
        )
        self._compute(tile, named)
        following = t.Assign(turn, (turn // turns + 1) * turns)
        loop = t.For(turn.name, group * share, turn < end, following, (*self.body,))
        return [*outer, loop]

    def _compute(self, number: t.Expr, named: dict[Size, t.Expr]) -> None:
        """Write the computation of the tile of a number."""
        batch = self._place_tile(number, named)
        self.body += self.registers.place()
        for operand in (self.left, self.right):
            self.body += operand.place(batch)
        self.body += [t.Blank(), *self.registers.declare()]
        self.body += [t.Blank(), *self._loop()]
        self.body += [t.Blank(), *self._finish(batch)]

    def _place_tile(
        self, tile: t.Expr, named: dict[Size, t.Expr]
    ) -> dict[Index, t.Expr]:
        """Name the batch indices, and the tile's first row and column."""
        rows, columns = (named[axis] for axis in self.shares.tiled_axes)
        at = unravel(self.builder, self.body, self.batch, tile // columns // rows)
        tile_row = tile // columns % rows if self.batch else tile // columns
        self.left.origin = self._let("tile_row", tile_row * self.tiling.m)
        self.right.origin = self._let("tile_column", tile % columns * self.tiling.n)
        return at

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
            slot = (self.whole_tile, self.slot) if self.tiling.stream else ()
            calls.append(t.Evaluate(t.call(finish, *slot, *place, total)))

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
        if self.tiling.stream:
            whole, slot = (t.Ident(s.fresh(name)) for name in ("is_whole", "in_slot"))
            inputs = [(whole.name, "bool"), (slot.name, "u32"), *inputs]
            place = at[self.row], at[self.column]
            keep = keep_total(s, self.tiling, slot, place, value, lanes)
            body.append(t.If(t.Unary("!", whole), (keep, t.Return())))
            about += "; those of a part of a tile are kept"
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
