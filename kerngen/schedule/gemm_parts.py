"""The terms of a tiled product cut into parts, where tiles alone are too few.

Each part leaves its totals in a buffer of its own; a second dispatch adds them up and
does the stage's steps.  How many parts there are depends on the sizes alone; where there
is but one, the first dispatch does the steps itself, and the second is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.schedule.addresses import row_major
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.contraction import product_of
from kerngen.schedule.cooperation import reduction_label, reduction_of
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import start_invocation, unravel
from kerngen.schedule.program import Shader
from kerngen.schedule.steps import vector_tensors, write_steps
from kerngen.schedule.task import Task, host_extent, host_product
from kerngen.schedule.tiling import Tiling
from kerngen.schedule.trips import loop_turns
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

GROUPS: Final = 512
"""So many workgroups keep a large device busy: tiles are cut up to that number."""

LEAST_TERMS: Final = 128
"""Parts of fewer terms would cost more than they gain."""

JOIN_SIZE: Final = 64


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """What a shader calls the number of parts, and the number of terms of each."""

    count: t.Expr
    terms: t.Expr


@final
@dataclass(frozen=True, slots=True)
class TermSplit:
    """How the terms of a product are cut: the shader and the host agree."""

    task: Task
    tiling: Tiling

    @property
    def possible(self) -> bool:
        """Whether there may be several parts."""
        return self.tiling.split > 1

    @property
    def host_groups(self) -> str:
        """The Python text of the number of workgroups."""
        if not self.possible:
            return self._host_tiles
        return f"{self._host_tiles} * {self.host_count}"

    @property
    def host_count(self) -> str:
        """The Python text of the number of parts."""
        return (
            f"parts({host_product(self._over)}, {self._host_tiles}, "
            f"turn={self.tiling.k}, most={self.tiling.split}, fill={GROUPS}, "
            f"least={LEAST_TERMS})"
        )

    @property
    def host_join(self) -> str:
        """The Python text of "there is something to join"."""
        return f"({self.host_count} != 1)"

    def name(
        self, shader: ShaderBuilder, body: list[t.Stmt], tiles: t.Expr | None = None
    ) -> Parts:
        """Name the number of parts, and the terms of one, in whole turns."""
        terms, k = shader.size(self._over), self.tiling.k
        wanted, each, count = (
            t.Ident(shader.fresh(name)) for name in ("wanted", "part_terms", "parts")
        )
        at_least_one = t.call("max", tiles or self._tiles(shader), 1)
        fill = ceil_div(t.u32(GROUPS), at_least_one)
        long_enough = ceil_div(terms, t.u32(LEAST_TERMS))
        most = t.call("min", self.tiling.split, long_enough)
        turns = ceil_div(ceil_div(terms, wanted), t.u32(k))
        body += [
            t.Let(wanted.name, t.call("max", t.call("min", fill, most), 1)),
            t.Let(each.name, t.call("max", turns, 1) * k),
            t.Let(count.name, ceil_div(terms, each)),
        ]
        return Parts(count, each)

    @property
    def _over(self) -> tuple[Index, ...]:
        return product_of(self.task)[0].over

    @property
    def _tiled(self) -> tuple[tuple[Index, ...], Index, Index]:
        """The indices of the domain: those of no tile, its rows' and its columns'."""
        found, row = product_of(self.task)
        own = (row, found.column)
        rest = tuple(index for index in self.task.domain if index not in own)
        return rest, row, found.column

    @property
    def _host_tiles(self) -> str:
        batch, row, column = self._tiled
        rows = f"ceil_div({host_extent(row.extent)}, {self.tiling.m})"
        columns = f"ceil_div({host_extent(column.extent)}, {self.tiling.n})"
        outer = f"{host_product(batch)} * " if batch else ""
        return f"{outer}{rows} * {columns}"

    def _tiles(self, shader: ShaderBuilder) -> t.Expr:
        batch, row, column = self._tiled
        rows = ceil_div(shader.extent(row.extent), t.u32(self.tiling.m))
        columns = ceil_div(shader.extent(column.extent), t.u32(self.tiling.n))
        return shader.size(batch) * rows * columns


def keep_total(
    shader: ShaderBuilder,
    part: t.Expr,
    at: Mapping[Index, t.Expr],
    total: t.Expr,
    lanes: int,
) -> t.Stmt:
    """Return the statement that stores the total of a part, or four of them."""
    task = shader.task
    extents = tuple(index.extent for index in task.domain)
    element = row_major(shader, extents, [at[index] for index in task.domain])
    kept = shader.scratch("parts", reduction_of(task).type, written=True)
    return kept.store((part * shader.size(task.domain) + element) // lanes, total)


def joining_shader(task: Task, tiling: Tiling, *, wide: bool) -> Shader:
    """Return the second dispatch: an invocation per element, or per four."""
    reduce, column = reduction_of(task), product_of(task)[0].column
    names = vector_tensors(task.stage, task.values, column)
    names.add(task.scratch_name("parts"))
    lanes = LANES if wide else 1
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES) if wide else {})
    vectors = shader.size(task.domain) // lanes
    body, place = start_invocation(shader, JOIN_SIZE, vectors)
    at = unravel(shader, body, task.domain, place * lanes)
    split = TermSplit(task, tiling)
    parts = split.name(shader, body)
    total, part = (t.Ident(shader.fresh(name)) for name in ("total", "part"))
    kept = shader.scratch("parts", reduce.type, written=False)
    take = accumulate(reduce.kind, total, kept.load(part * vectors + place))
    body += [
        t.Var(total.name, identity(shader, reduce.kind, reduce.type, lanes)),
        t.count_up(part.name, 0, parts.count, 1, take),
    ]
    vector = column if wide else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    lowerer.reduced[reduce] = Value(total, wide=wide)
    write_steps(lowerer, task.stage)
    elements = host_product(task.domain)
    return shader.finish(
        body,
        groups=f"ceil_div({elements}, {JOIN_SIZE * lanes}) * {split.host_join}",
        workgroup_size=JOIN_SIZE,
        summary="second of two dispatches: the parts together.",
        variant="finish" if wide else "finish.edge",
        turns=loop_turns(task, {reduce: split.host_count}),
    )


def ceil_div(value: t.Expr, by: t.Expr) -> t.Expr:
    """Return the shader's `value / by`, rounded up."""
    number = t.as_int(by)
    above = t.Binary("-", value + by, t.ONE) if number is None else value + (number - 1)
    return above // by
