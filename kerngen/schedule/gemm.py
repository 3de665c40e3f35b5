"""Strategy `gemm`: a matrix product in register tiles over workgroup memory.

Any reduction of two factors takes the same way: see `contraction.py`.  A workgroup computes a tile of the result.  Each turn of its loop brings `k` terms of
both operands into workgroup memory; the next turn's operands are loaded before this
turn's arithmetic.  Accumulators are named vectors in unrolled code.  The steps of the
stage, activation and bias included, are done by the function `finish`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Expr, Extent, Index
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.contraction import (
    Contraction,
    contraction_of,
    memory_axis,
    product_of,
    tile_axis,
)
from kerngen.schedule.cooperation import counted_terms, reduction_label, reduction_of
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.operand import Operand
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.register_tile import RegisterTile
from kerngen.schedule.steps import (
    last_extents,
    tensors_in_runs,
    vector_tensors,
    write_steps,
)
from kerngen.schedule.task import (
    Options,
    Task,
    host_extent,
    host_multiple,
    host_product,
    host_whole,
)
from kerngen.schedule.tiling import VECTOR, Tiling, tiling_of
from kerngen.schedule.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t


def fits_gemm(task: Task) -> str:
    """Say why `gemm` does not fit the stage; empty if it does."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    if len(task.domain) < 2:
        return "its result has one axis; gemm needs two"
    if found.row is None:
        return (
            f"no index is of one factor alone, as {found.column.name} is of the other"
        )
    if not any(_axes(found, found.row)):
        return "no factor is read in runs along memory"
    return ""


def row_of(task: Task) -> Index:
    """Return the row of a stage that fits."""
    return product_of(task)[1]


def lower_gemm(task: Task, options: Options) -> Iterator[Variant]:
    """Yield a variant for whole tiles, and one for any size."""
    tiling = tiling_of(options)
    when = _whole_tiles(task, tiling)
    if when is not None:
        yield Variant("aligned", when, (_Gemm(task, tiling, whole=True).shader(),))
    yield Variant("edge", "", (_Gemm(task, tiling, whole=False).shader(),))


def _axes(found: Contraction, row: Index) -> Iterator[Index | None]:
    """Yield the index along which each factor is read in runs, if any."""
    for factor, own in ((found.left, row), (found.right, found.column)):
        yield memory_axis(factor, found.last, own)


def _wide_tensors(found: Contraction, row: Index) -> set[str]:
    """Return the tensors that the factors of a product read in vectors."""
    names: set[str] = set()
    for factor, own in ((found.left, row), (found.right, found.column)):
        names |= tensors_in_runs((factor,), tile_axis(factor, found.last, own))
    return names


def _whole_tiles(task: Task, tiling: Tiling) -> str | None:
    """Return the Python text of "every tile is whole"; None if it never is.

    Vectors end where the last of several indices does, which is soon in windows: whole
    tiles of those would gain nothing.
    """
    found, row = product_of(task)
    if len(found.over) > 1 and not all(_axes(found, row)):
        return None
    column = found.column
    names = vector_tensors(task.stage, task.values, column)
    names |= _wide_tensors(found, row)
    widths = last_extents(task.stage, task.values, names)
    terms = tuple(index.extent for index in found.over)
    tiled = (row.extent, column.extent, *(terms if len(terms) == 1 else ()))
    parts = [
        host_multiple([row.extent], tiling.m),
        host_multiple([column.extent], tiling.n),
        host_whole(found.over, tiling.k),
        host_multiple([w for w in (*terms[-1:], *widths) if w not in tiled], VECTOR),
        *map(_is_positive, terms),
    ]
    if None in parts:
        return None
    return " and ".join(part for part in parts if part)


def _is_positive(extent: Extent) -> str:
    """Return the Python text of it; nothing where it is known, as of literals."""
    return f"{host_extent(extent)} > 0" if isinstance(extent, str) else ""


@final
@dataclass
class _Gemm:
    """Writes one shader; `whole` tiles need no care at the edges."""

    task: Task
    tiling: Tiling
    whole: bool
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        found, self.row = product_of(self.task)
        self.column, self.over = found.column, found.over
        own = (self.row, self.column)
        self.batch = tuple(index for index in self.task.domain if index not in own)
        self.steps_wide = self.whole and found.right_axis == self.column
        self.builder = ShaderBuilder(self.task, self._lanes(found))
        self.left = self._operand(found.left, self.row, "a", self.tiling.m)
        self.right = self._operand(found.right, self.column, "b", self.tiling.n)
        self.registers = RegisterTile(
            self.builder, self.tiling, found, self.left, self.right
        )

    def _lanes(self, found: Contraction) -> dict[str, int]:
        """Bind as vectors what whole tiles read and write in runs."""
        if not self.whole:
            return {}
        wide = _wide_tensors(found, self.row)
        if self.steps_wide:
            wide |= vector_tensors(self.task.stage, self.task.values, self.column)
        return dict.fromkeys(wide, LANES)

    def _operand(self, factor: Expr, own: Index, name: str, size: int) -> Operand:
        builder, over, tiling = self.builder, self.over, self.tiling
        return Operand(builder, factor, own, over, name, size, tiling, self.whole)

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
            terms=counted_terms(reduction_of(self.task)),
            turns=f"ceil_div({host_product(self.over)}, {t_.k})",
        )

    # Where this workgroup works

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

    # The product

    def _loop(self) -> list[t.Stmt]:
        s, t_ = self.builder, self.tiling
        first, following = t.Ident(s.fresh("first")), t.Ident(s.fresh("following"))
        depth = s.size(self.over)
        operands = (self.left, self.right)
        fetched = [stmt for operand in operands for stmt in operand.fetch(following)]
        turn: list[t.Stmt] = [
            *(stmt for operand in operands for stmt in operand.stage()),
            t.BARRIER,
            t.Let(following.name, first + t_.k),
            t.If(following < depth, tuple(fetched)),
            *(
                self.registers.accumulate(p, self._left_over(first, depth))
                for p in range(0, t_.k, VECTOR)
            ),
            t.BARRIER,
        ]
        return [
            *(stmt for operand in operands for stmt in operand.declare()),
            *(stmt for operand in operands for stmt in operand.fetch(t.ZERO)),
            t.count_up(first.name, 0, depth, t_.k, *turn),
        ]

    def _left_over(self, first: t.Expr, depth: t.Expr) -> t.Expr | None:
        """Return how many terms there are, where those beyond the last would count."""
        whole = self.whole or self.registers.found.is_product
        return None if whole else depth - first

    # The result

    def _finish(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Hand every accumulator to the function that does the stage's steps."""
        finish = self._declare_finish(LANES if self.steps_wide else 1)
        calls: list[t.Stmt] = []

        def call(i: t.Expr, j: t.Expr, total: t.Expr) -> None:
            at = {
                **batch,
                self.row: self.left.origin + i,
                self.column: self.right.origin + j,
            }
            place = (at[index] for index in self.task.domain)
            calls.append(t.Evaluate(t.call(finish, *place, total)))

        for i, columns, total in self.registers.results():
            if self.steps_wide:
                call(i, columns[0], total)
                continue
            for j, component in zip(columns, COMPONENTS, strict=True):
                call(i, j, t.Member(total, component))
        return calls

    def _declare_finish(self, lanes: int) -> str:
        """Declare the function that does the steps for one total, or for four."""
        s = self.builder
        name = s.fresh("finish")
        at = {index: t.Ident(s.name(index.name)) for index in self.task.domain}
        value = t.Ident(
            s.fresh(f"{reduction_label(self.task)}_{self.registers.found.kind}")
        )
        body: list[t.Stmt] = [] if self.whole else [self._leave_outside(at)]
        wide = lanes == LANES
        lowerer = Lowerer(s, dict(at), body, vector=self.column if wide else None)
        lowerer.reduced[reduction_of(self.task)] = Value(value, wide=wide)
        write_steps(lowerer, self.task.stage)
        type_ = wgsl_type(self.registers.found.type, lanes)
        signature = (*((i.name, "u32") for i in at.values()), (value.name, type_))
        what = "four neighbouring totals of a row" if wide else "one total"
        about = f"What becomes of {what}."
        function = t.Function(name, signature, "", tuple(body), about)
        s.declare(f"function {name}", function)
        return name

    def _leave_outside(self, at: dict[Index, t.Ident]) -> t.Stmt:
        bounds = (
            at[x] >= self.builder.extent(x.extent) for x in (self.row, self.column)
        )
        return t.If(t.any_of(*bounds), (t.Return(),))
