"""Strategy `gemm`: a matrix product in register tiles over workgroup memory.

A workgroup computes a tile of the result.  Each turn of its loop brings `k` terms of
both operands into workgroup memory, where they lie with the reduction outermost, so
that every invocation reads its fragments as vectors; the next turn's operands are
loaded before this turn's arithmetic.  Accumulators are named vectors in unrolled code.
The steps of the stage, activation and bias included, are done by `finish`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Index, IndexValue, Load
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.contraction import Contraction, contraction_of
from kerngen.schedule.cooperation import reduction_label, reduction_of
from kerngen.schedule.lowering import LANES, Lowerer, Value
from kerngen.schedule.operand import Operand
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.steps import last_extents, vector_tensors, write_steps
from kerngen.schedule.task import (
    Options,
    Task,
    host_extent,
    host_multiple,
    host_product,
)
from kerngen.schedule.tiling import VECTOR, Tiling, tiling_of
from kerngen.shader import tree as t


def fits_gemm(task: Task) -> str:
    """Say why `gemm` does not fit the stage; empty if it does."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    if len(task.domain) < 2:
        return "its result has one axis; gemm needs two"
    *_, row, column = task.domain
    if IndexValue(row) not in found.left.subscripts:
        return f"'{found.left.tensor.name}' does not depend on {row.name}"
    if IndexValue(row) in found.right.subscripts:
        return f"both factors depend on {row.name}"
    for load, index in ((found.left, row), (found.right, column)):
        if load.subscripts[-1] not in (IndexValue(index), IndexValue(found.over)):
            return f"'{load.tensor.name}' is not read along its last axis"
    return ""


def lower_gemm(task: Task, options: Options) -> tuple[Variant, ...]:
    """Return a variant for whole tiles, and one for any size."""
    found = contraction_of(task)
    if isinstance(found, str):
        raise TypeError(found)
    tiling = tiling_of(options)
    edge = Variant("edge", "", (_Gemm(task, found, tiling, whole=False).shader(),))
    when = _whole_tiles(task, found, tiling)
    if when is None:
        return (edge,)
    aligned = _Gemm(task, found, tiling, whole=True).shader()
    return (Variant("aligned", when, (aligned,)), edge)


def _whole_tiles(task: Task, found: Contraction, tiling: Tiling) -> str | None:
    """Return the Python text of "every tile is whole"; None if it never is."""
    *_, row, column = task.domain
    names = vector_tensors(task.stage, task.values, column)
    names |= {found.left.tensor.name, found.right.tensor.name}
    widths = last_extents(task.stage, task.values, names)
    tiled = (row.extent, column.extent, found.over.extent)
    parts = [
        host_multiple([row.extent], tiling.m),
        host_multiple([column.extent], tiling.n),
        host_multiple([found.over.extent], tiling.k),
        host_multiple([w for w in widths if w not in tiled], VECTOR),
        f"{host_extent(found.over.extent)} > 0",
    ]
    if None in parts:
        return None
    return " and ".join(part for part in parts if part)


@final
@dataclass
class _Gemm:
    """Writes one shader; `whole` tiles need no care at the edges."""

    task: Task
    found: Contraction
    tiling: Tiling
    whole: bool
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        *batch, self.row, self.column = self.task.domain
        self.batch = tuple(batch)
        self.builder = ShaderBuilder(self.task, self._lanes())
        self.left = self._operand(self.found.left, self.row, "a", self.tiling.m)
        self.right = self._operand(self.found.right, self.column, "b", self.tiling.n)
        many = self.tiling.micro_n > VECTOR
        self.accumulators = [
            (row, vector, self._fresh(f"acc_{row}_{vector}" if many else f"acc_{row}"))
            for row in range(self.tiling.micro_m)
            for vector in range(self.tiling.micro_n // VECTOR)
        ]

    def _fresh(self, wanted: str) -> t.Ident:
        return t.Ident(self.builder.fresh(wanted))

    def _lanes(self) -> dict[str, int]:
        """Bind as vectors what whole tiles read and write in runs."""
        if not self.whole:
            return {}
        wide = vector_tensors(self.task.stage, self.task.values, self.column)
        wide |= {self.found.left.tensor.name, self.found.right.tensor.name}
        return dict.fromkeys(wide, LANES)

    def _operand(self, load: Load, outer: Index, name: str, size: int) -> Operand:
        over, tiling = self.found.over, self.tiling
        return Operand(self.builder, load, outer, over, name, size, tiling, self.whole)

    def shader(self) -> Shader:
        """Return the whole shader."""
        t_ = self.tiling
        batch = self._place_tile()
        tx, ty = self._place_invocation()
        for operand in (self.left, self.right):
            self.body += operand.place(batch)
        self.body += [t.Blank(), *self._declare_accumulators()]
        self.body += [t.Blank(), *self._loop(tx, ty)]
        self.body += [t.Blank(), *self._finish(batch, tx, ty)]
        row, column = host_extent(self.row.extent), host_extent(self.column.extent)
        tiles = f"ceil_div({row}, {t_.m}) * ceil_div({column}, {t_.n})"
        rows = host_product(self.batch)
        return self.builder.finish(
            self.body,
            groups=f"{rows} * {tiles}" if self.batch else tiles,
            workgroup_size=t_.invocations,
            summary=(
                f"one workgroup per {t_.m} x {t_.n} tile, "
                f"{t_.micro_m} x {t_.micro_n} per invocation."
            ),
            variant="" if self.whole else "edge",
        )

    # Where this workgroup and this invocation work

    def _place_tile(self) -> dict[Index, t.Expr]:
        """Name the batch indices and the tile's first row and column."""
        s = self.builder
        group, rows, columns = (
            t.Ident(s.fresh(name)) for name in ("group", "tile_rows", "tile_columns")
        )
        self.body += [
            t.Let(group.name, linear_group(s)),
            t.Let(rows.name, self._tiles(self.row, self.tiling.m)),
            t.Let(columns.name, self._tiles(self.column, self.tiling.n)),
            t.If(group >= s.size(self.batch) * rows * columns, (t.Return(),)),
        ]
        at = unravel(s, self.body, self.batch, group // columns // rows)
        tile_row = group // columns % rows if self.batch else group // columns
        self.left.origin = self._let("tile_row", tile_row * self.tiling.m)
        self.right.origin = self._let("tile_column", group % columns * self.tiling.n)
        return at

    def _tiles(self, index: Index, size: int) -> t.Expr:
        return (self.builder.extent(index.extent) + (size - 1)) // size

    def _let(self, wanted: str, value: t.Expr) -> t.Ident:
        name = self.builder.fresh(wanted)
        self.body.append(t.Let(name, value))
        return t.Ident(name)

    def _place_invocation(self) -> tuple[t.Ident, t.Ident]:
        """Name this invocation's place among the columns and rows of the tile."""
        t_, lane = self.tiling, self.builder.lane
        across = t_.columns // t_.lane_columns
        group, within = lane // 32, lane % 32
        column = group % across * t_.lane_columns + within % t_.lane_columns
        row = group // across * t_.lane_rows + within // t_.lane_columns
        return self._let("column", column), self._let("row", row)

    # The product

    def _declare_accumulators(self) -> list[t.Stmt]:
        return [t.Var(acc.name, None, "vec4f") for _, _, acc in self.accumulators]

    def _loop(self, tx: t.Ident, ty: t.Ident) -> list[t.Stmt]:
        s, t_ = self.builder, self.tiling
        first = t.Ident(s.fresh("first"))
        depth = s.extent(self.found.over.extent)
        following = t.Ident(s.fresh("following"))
        operands = (self.left, self.right)
        staged = [stmt for operand in operands for stmt in operand.stage()]
        fetched = [stmt for operand in operands for stmt in operand.fetch(following)]
        turn: list[t.Stmt] = [
            *staged,
            t.BARRIER,
            t.Let(following.name, first + t_.k),
            t.If(following < depth, tuple(fetched)),
            *(self._term(p, tx, ty) for p in range(t_.k)),
            t.BARRIER,
        ]
        return [
            *(stmt for operand in operands for stmt in operand.declare()),
            *(stmt for operand in operands for stmt in operand.fetch(t.ZERO)),
            t.count_up(first.name, 0, depth, t_.k, *turn),
        ]

    def _term(self, p: int, tx: t.Ident, ty: t.Ident) -> t.Stmt:
        """Multiply one column of the left tile with one row of the right one."""
        t_ = self.tiling
        body: list[t.Stmt] = []
        for operand, place, stride in (
            (self.left, ty, t_.rows),
            (self.right, tx, t_.columns),
        ):
            for number, fragment in enumerate(operand.fragments):
                value = operand.tile[p][place + number * stride]
                body.append(t.Let(fragment.name, value))
        for row, vector, acc in self.accumulators:
            part = t.Member(self.left.fragments[row // VECTOR], "xyzw"[row % VECTOR])
            product = t.Binary("*", part, self.right.fragments[vector])
            body.append(t.Assign(acc, product, "+="))
        return t.Block(f"{self.found.over.name} = {p}", tuple(body))

    # The result

    def _finish(
        self, batch: dict[Index, t.Expr], tx: t.Ident, ty: t.Ident
    ) -> list[t.Stmt]:
        """Hand every accumulator to the function that does the stage's steps."""
        t_ = self.tiling
        name = self._declare_finish()
        row = self._let("first_row", self.left.origin + ty * VECTOR)
        column = self._let("first_column", self.right.origin + tx * VECTOR)
        outer = tuple(batch[index] for index in self.batch)
        calls: list[t.Stmt] = []
        for number, vector, acc in self.accumulators:
            block, within = divmod(number, VECTOR)
            i = row + (block * t_.rows * VECTOR + within)
            j = column + vector * t_.columns * VECTOR
            calls.append(t.Evaluate(t.call(name, *outer, i, j, acc)))
        return calls

    def _declare_finish(self) -> str:
        """Declare the function that does the steps for four neighbours in a row."""
        s = self.builder
        name = s.fresh("finish")
        about = "What becomes of four neighbouring sums of a row."
        at = {index: t.Ident(s.name(index.name)) for index in self.task.domain}
        value = t.Ident(s.fresh(f"{reduction_label(self.task)}_sum"))
        parameters = tuple((i.name, "u32") for i in at.values())
        reduce = reduction_of(self.task)
        body: list[t.Stmt] = []
        if self.whole:
            lowerer = Lowerer(s, dict(at), body, vector=self.column)
            lowerer.reduced[reduce] = Value(value, wide=True)
            write_steps(lowerer, self.task.stage)
        else:
            element = self._declare_finish_one(at, value)
            outer = tuple(at[index] for index in (*self.batch, self.row))
            for number, component in enumerate("xyzw"):
                j = at[self.column] + number
                one = t.Member(value, component)
                body.append(t.Evaluate(t.call(element, *outer, j, one)))
        signature = (*parameters, (value.name, "vec4f"))
        s.declare(
            f"function {name}", t.Function(name, signature, "", tuple(body), about)
        )
        return name

    def _declare_finish_one(self, at: dict[Index, t.Ident], value: t.Ident) -> str:
        """Declare the function that does the steps for one element inside the edge."""
        s = self.builder
        name = s.fresh("finish_one")
        about = "What becomes of one sum, if it lies inside the edge."
        outside = t.any_of(
            *(at[x] >= s.extent(x.extent) for x in (self.row, self.column))
        )
        body: list[t.Stmt] = [t.If(outside, (t.Return(),))]
        lowerer = Lowerer(s, dict(at), body)
        lowerer.reduced[reduction_of(self.task)] = Value(value)
        write_steps(lowerer, self.task.stage)
        signature = (*((i.name, "u32") for i in at.values()), (value.name, "f32"))
        s.declare(
            f"function {name}", t.Function(name, signature, "", tuple(body), about)
        )
        return name
