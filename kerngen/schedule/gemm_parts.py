"""The terms of a tiled product cut into parts, where tiles alone are too few.

Each part leaves its totals in a buffer of its own; a second dispatch adds them up and
does the stage's steps.  How many parts there are depends on the sizes alone; where there
is but one, the first dispatch does the steps itself, and the second is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan.size import (
    ONE,
    Literal,
    Size,
    Symbol,
    ceil_div,
    compare,
    maximum,
    minimum,
    select,
)
from kerngen.schedule.addresses import row_major
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.contraction import product_of
from kerngen.schedule.cooperation import reduction_label, reduction_of
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import start_invocation, unravel
from kerngen.schedule.program import Shader
from kerngen.schedule.sizes import domain_size, extent_size, to_wgsl
from kerngen.schedule.steps import vector_tensors, write_steps
from kerngen.schedule.task import Task
from kerngen.schedule.tiling import Tiling
from kerngen.schedule.trips import loop_trips
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

GROUPS: Final = 512
"""So many workgroups keep a large device busy: tiles are cut up to that number."""

LEAST_TERMS: Final = 128
"""Parts of fewer terms would cost more than they gain."""

JOIN_SIZE: Final = 64


@final
@dataclass(frozen=True, slots=True)
class TermSplit:
    """How the terms of a product are cut into parts, in whole turns of the loop.

    `m`, `n` and `k` are those of a tile, and `most` the parts there are at most.
    """

    task: Task
    m: Size
    n: Size
    k: Size
    most: Size

    @classmethod
    def of(cls, task: Task, tiling: Tiling) -> TermSplit:
        """Return how a tiling cuts them."""
        return cls(task, *map(Literal, _numbers(tiling)))

    @property
    def possible(self) -> bool:
        """Whether there may be several parts."""
        return self.most != ONE

    @property
    def groups(self) -> Size:
        """The number of workgroups."""
        return self.tiles * self.count if self.possible else self.tiles

    @property
    def tiles(self) -> Size:
        """The number of tiles of the result."""
        rows, columns = self.tiled_axes
        return domain_size(self._batch) * rows * columns

    @property
    def tiled_axes(self) -> tuple[Size, Size]:
        """How many tiles lie along the rows of the result, and along its columns."""
        found, row = product_of(self.task)
        return (
            ceil_div(extent_size(row.extent), self.m),
            ceil_div(extent_size(found.column.extent), self.n),
        )

    @property
    def count(self) -> Size:
        """The number of parts: of no terms there is none."""
        return ceil_div(self._terms, self.part_terms)

    @property
    def part_terms(self) -> Size:
        """The number of terms of each part but the last."""
        turns = ceil_div(ceil_div(self._terms, self.wanted), self.k)
        return maximum(turns, 1) * self.k

    @property
    def wanted(self) -> Size:
        """As many parts as keep a device busy, none of them too short."""
        fill = ceil_div(GROUPS, maximum(self.tiles, 1))
        long_enough = ceil_div(self._terms, LEAST_TERMS)
        return maximum(minimum(fill, minimum(self.most, long_enough)), 1)

    def if_joined(self, size: Size) -> Size:
        """Return a size where a second dispatch joins the parts, else 0."""
        return select(compare("!=", self.count, 1), size, 0)

    def name(
        self,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        named: Mapping[Size, t.Expr] | None = None,
    ) -> dict[Size, t.Expr]:
        """Write the number of parts and of a part's terms; return all that has a name.

        `named` has the sizes that are variables of the shader already.
        """
        known = dict(named or {})
        for name, size in (
            ("wanted", self.wanted),
            ("part_terms", self.part_terms),
            ("parts", self.count),
        ):
            variable = t.Ident(shader.fresh(name))
            body.append(t.Let(variable.name, to_wgsl(size, shader, known)))
            known[size] = variable
        return known

    @property
    def _terms(self) -> Size:
        return domain_size(product_of(self.task)[0].over)

    @property
    def _batch(self) -> tuple[Index, ...]:
        """The indices of the domain that no tile covers."""
        found, row = product_of(self.task)
        own = (row, found.column)
        return tuple(index for index in self.task.domain if index not in own)


def _numbers(tiling: Tiling) -> tuple[int, int, int, int]:
    """Return what the number of parts depends on, besides the sizes of a call."""
    return tiling.m, tiling.n, tiling.k, tiling.split


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
    """Return the second dispatch: an invocation per element, or per four.

    The pipeline has the numbers of the tiling, so that all of them share the shader.
    """
    task = replace(task, label="gemm_split")
    reduce, column = reduction_of(task), product_of(task)[0].column
    names = vector_tensors(task.stage, task.values, column)
    names.add(task.scratch_name("parts"))
    lanes = LANES if wide else 1
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES) if wide else {})
    vectors = shader.size(task.domain) // lanes
    body, place = start_invocation(shader, JOIN_SIZE, vectors)
    at = unravel(shader, body, task.domain, place * lanes)
    split = TermSplit.of(task, tiling)
    given = zip(("TILE_M", "TILE_N", "TILE_K", "SPLIT"), _numbers(tiling), strict=True)
    named: dict[Size, t.Expr] = {
        Symbol(f"tiling.{name}"): shader.override(name, value) for name, value in given
    }
    own = TermSplit(task, *named)
    parts = own.name(shader, body, named)[own.count]
    total, part = (t.Ident(shader.fresh(name)) for name in ("total", "part"))
    kept = shader.scratch("parts", reduce.type, written=False)
    take = accumulate(reduce.kind, total, kept.load(part * vectors + place))
    body += [
        t.Var(total.name, identity(shader, reduce.kind, reduce.type, lanes)),
        t.count_up(part.name, 0, parts, 1, take),
    ]
    vector = column if wide else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    lowerer.reduced[reduce] = Value(total, wide=wide)
    write_steps(lowerer, task.stage)
    invocations = ceil_div(domain_size(task.domain), JOIN_SIZE * lanes)
    return shader.finish(
        body,
        groups=split.if_joined(invocations),
        workgroup_size=JOIN_SIZE,
        summary="second of two dispatches: the parts together.",
        variant="finish" if wide else "finish.edge",
        trips=loop_trips(task, {reduce: split.count}),
    )
