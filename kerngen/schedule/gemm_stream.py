"""Stream-K: the workgroups of a tiled product share the terms of all tiles evenly.

A workgroup per tile leaves a device idle where the tiles do not fill it, or fill it once
and a bit.  Here the loop's turns of all tiles lie in a line, and each workgroup takes an
equal share of it:

    tile          0         1         2         3         4
              ├─────────┼─────────┼─────────┼─────────┼─────────┤
    workgroup ├──────0──────┤├──────1──────┤├──────2──────┤├──3...

A tile within one share is finished at once.  What a workgroup has of any other tile it
keeps in a slot of its own, and a second dispatch adds the slots of each tile, in order.
After Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense
Matrix-Matrix Multiplication on the GPU", 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan.size import (
    Literal,
    Size,
    Symbol,
    ceil_div,
    compare,
    maximum,
    remainder,
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

LEAST_TERMS: Final = 64
"""Shares of fewer terms would cost more than they gain: on an H100, 512 x 512 x 512
takes 14.8 us in parts of 128 terms, 15.2 in parts of 64, 22.5 in parts of 32."""

JOIN_SIZE: Final = 64


@final
@dataclass(frozen=True, slots=True)
class TermShares:
    """How workgroups share the turns of all tiles.

    `m`, `n` and `k` are those of a tile, and `most` the workgroups there are at most.
    """

    task: Task
    m: Size
    n: Size
    k: Size
    most: Size

    @classmethod
    def of(cls, task: Task, tiling: Tiling) -> TermShares:
        """Return how the workgroups of a tiling share them."""
        return cls(task, *map(Literal, _numbers(tiling)))

    @property
    def tiled_axes(self) -> tuple[Size, Size]:
        """How many tiles lie along the rows of the result, and along its columns."""
        found, row = product_of(self.task)
        return (
            ceil_div(extent_size(row.extent), self.m),
            ceil_div(extent_size(found.column.extent), self.n),
        )

    @property
    def tiles(self) -> Size:
        """The number of tiles of the result."""
        rows, columns = self.tiled_axes
        return domain_size(batch_of(self.task)) * rows * columns

    @property
    def turns(self) -> Size:
        """The turns of a tile: at least one, as tiles without terms are finished, too."""
        return maximum(ceil_div(domain_size(product_of(self.task)[0].over), self.k), 1)

    @property
    def share(self) -> Size:
        """The turns of a workgroup; the last one has what is left."""
        least = ceil_div(LEAST_TERMS, self.k)
        return maximum(ceil_div(self.tiles * self.turns, self.most), least)

    @property
    def groups(self) -> Size:
        """The number of workgroups."""
        return ceil_div(self.tiles * self.turns, self.share)

    def if_joined(self, size: Size) -> Size:
        """Return a size where a second dispatch adds what tiles have in slots, else 0."""
        return select(compare("!=", remainder(self.share, self.turns), 0), size, 0)


def batch_of(task: Task) -> tuple[Index, ...]:
    """Return the indices of the domain that no tile covers."""
    found, row = product_of(task)
    return tuple(index for index in task.domain if index not in (row, found.column))


def name_sizes(
    shader: ShaderBuilder,
    body: list[t.Stmt],
    sizes: Iterable[tuple[str, Size]],
    named: Mapping[Size, t.Expr] | None = None,
) -> dict[Size, t.Expr]:
    """Write variables for sizes; return all that have a name, those of before included."""
    known = dict(named or {})
    for name, size in sizes:
        variable = t.Ident(shader.fresh(name))
        body.append(t.Let(variable.name, to_wgsl(size, shader, known)))
        known[size] = variable
    return known


def keep_total(
    shader: ShaderBuilder,
    tiling: Tiling,
    slot: t.Expr,
    at: tuple[t.Expr, t.Expr],
    total: t.Expr,
    lanes: int,
) -> t.Stmt:
    """Return the statement that stores a total, or four of a row, in a slot."""
    kept = shader.scratch("parts", reduction_of(shader.task).type, written=True)
    row, column = at
    element = row % tiling.m * tiling.n + column % tiling.n
    return kept.store((slot * (tiling.m * tiling.n) + element) // lanes, total)


def joining_shader(task: Task, tiling: Tiling, *, wide: bool) -> Shader:
    """Return the second dispatch: an invocation per element, or per four.

    The pipeline has the numbers of the tiling, so that all of them share the shader.
    """
    task = replace(task, label="gemm_stream")
    reduce, (found, row) = reduction_of(task), product_of(task)
    column = found.column
    names = vector_tensors(task.stage, task.values, column)
    names.add(task.scratch_name("parts"))
    lanes = LANES if wide else 1
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES) if wide else {})
    body, place = start_invocation(shader, JOIN_SIZE, shader.size(task.domain) // lanes)
    at = unravel(shader, body, task.domain, place * lanes)
    given = {
        name: (Symbol(f"tiling.{name}"), shader.override(name, value))
        for name, value in zip(NAMES, _numbers(tiling), strict=True)
    }
    own = TermShares(task, *(symbol for symbol, _ in given.values()))
    named = name_sizes(
        shader,
        body,
        (
            ("tile_rows", own.tiled_axes[0]),
            ("tile_columns", own.tiled_axes[1]),
            ("turns", own.turns),
            ("share", own.share),
        ),
        dict(given.values()),
    )
    m, n = given["TILE_M"][1], given["TILE_N"][1]
    batch = batch_of(task)
    tile = (at[row] // m) * named[own.tiled_axes[1]] + at[column] // n
    if batch:
        extents = tuple(index.extent for index in batch)
        number = row_major(shader, extents, [at[index] for index in batch])
        tile = number * (named[own.tiled_axes[0]] * named[own.tiled_axes[1]]) + tile
    turns, share = named[own.turns], named[own.share]
    first, begin, end, group, total = (
        t.Ident(shader.fresh(name))
        for name in ("first", "begin", "end", "group", "total")
    )
    kept = shader.scratch("parts", reduce.type, written=False)
    slot = group * 2 + t.call("u32", group.equals(begin))
    element = slot * (m * n) + at[row] % m * n + at[column] % n
    take = accumulate(reduce.kind, total, kept.load(element // lanes))
    body += [
        t.Let(first.name, tile * turns),
        t.Let(begin.name, first // share),
        t.Let(end.name, (first + turns - 1) // share),
        t.If(begin.equals(end), (t.Return(),)),
        t.Var(total.name, identity(shader, reduce.kind, reduce.type, lanes)),
        t.count_up(group.name, begin, end + 1, 1, take),
    ]
    vector = column if wide else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    lowerer.reduced[reduce] = Value(total, wide=wide)
    write_steps(lowerer, task.stage)
    split = TermShares.of(task, tiling)
    invocations = ceil_div(domain_size(task.domain), JOIN_SIZE * lanes)
    return shader.finish(
        body,
        groups=split.if_joined(invocations),
        workgroup_size=JOIN_SIZE,
        summary="second of two dispatches: what tiles have in several slots.",
        variant="finish" if wide else "finish.edge",
        trips=loop_trips(task, {reduce: ceil_div(split.turns, split.share) + 1}),
    )


NAMES: Final = ("TILE_M", "TILE_N", "TILE_K", "STREAM")
"""The overrides of the second dispatch."""


def _numbers(tiling: Tiling) -> tuple[int, int, int, int]:
    """Return what the shares depend on, besides the sizes of a call."""
    return tiling.m, tiling.n, tiling.k, tiling.stream
