"""Blocks of columns, in parts, for a block of rows of a product at once.

As in `columnwise.py`, lanes lie along the columns, and a second dispatch joins the parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.addresses import row_major
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.columnwise import (
    COLUMNS,
    LANES_PER_GROUP,
    by_column_width,
    slice_loop,
    slice_turns,
    split_of,
)
from kerngen.schedule.cooperation import (
    BYTES,
    join,
    reduction_label,
    reduction_of,
    shared_array,
)
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import EVERYWHERE_BYTES, Shader, Variant
from kerngen.schedule.row_block import RowBlock
from kerngen.schedule.task import Task, host_extent, host_product
from kerngen.schedule.trips import loop_turns
from kerngen.schedule.values import LANES
from kerngen.shader import tree as t


def lower_columnwise_block(task: Task, count: int) -> Iterator[Variant]:
    """Return the variants that do `count` rows at once."""

    def first(names: set[str]) -> Shader:
        return _Parts(task, count, names).shader()

    return by_column_width(task, first)


@final
@dataclass
class _Parts:
    """Writes the first dispatch: parts of the columns, for the rows of a block."""

    task: Task
    count: int
    names: set[str]
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        task, self.width = self.task, LANES if self.names else 1
        self.across = COLUMNS // self.width
        self.slices = LANES_PER_GROUP // self.across
        wide = self.names | {task.scratch_name("parts")} if self.names else self.names
        self.builder = ShaderBuilder(task, dict.fromkeys(wide, LANES))
        self.block = RowBlock(self.builder, task, self.count)
        self.reduce, self.split = reduction_of(task), split_of(task)
        *outer, self.column = task.domain
        self.outer = tuple(outer)
        self.batch = tuple(index for index in outer if index != self.block.row)
        self.parts, self.part, self.slice = (
            t.Ident(self.builder.fresh(name)) for name in ("count", "part", "slice")
        )

    def shader(self) -> Shader:
        """Return the whole shader."""
        at = self._place()
        inside = at[self.column] < self._columns
        self._accumulate(at, inside)
        self._join_and_store(at, inside)
        batch = f"{host_product(self.batch)} * " if self.batch else ""
        columns = f"ceil_div({host_extent(self.column.extent)}, {COLUMNS})"
        groups = f"{self.split.host_count} * {columns} * {self.block.host_needed}"
        return self.builder.finish(
            self.body,
            groups=f"{batch}{groups}",
            workgroup_size=LANES_PER_GROUP,
            summary=(
                f"first of two dispatches: a part of {COLUMNS} columns per workgroup, "
                f"in {self.slices} slices, {self.count} rows at once."
            ),
            variant="" if self.names else "edge",
            turns=loop_turns(
                self.task, {self.reduce: slice_turns(self.task, self.slices)}
            ),
        )

    @property
    def _columns(self) -> t.Expr:
        return self.builder.extent(self.column.extent)

    def _place(self) -> dict[Index, t.Expr]:
        """Name the rows and the columns of this lane, and its part of the terms."""
        s, body = self.builder, self.body
        group, across, blocks = (
            t.Ident(s.fresh(name)) for name in ("group", "column_blocks", "blocks")
        )
        size = s.size(self.batch) * self.parts * across * blocks
        line = group // blocks // across
        body += [
            t.Let(self.parts.name, self.split.count(s)),
            t.Let(across.name, (self._columns + (COLUMNS - 1)) // COLUMNS),
            t.Let(blocks.name, self.block.needed),
            t.Let(group.name, linear_group(s)),
            t.If(group >= size, (t.Return(),)),
            t.Let(self.slice.name, s.lane // self.across),
            t.Let(self.part.name, line % self.parts if self.batch else line),
            *self.block.place(group % blocks),
        ]
        at = unravel(s, body, self.batch, line // self.parts)
        name = s.name(self.column.name)
        first = group // blocks % across * COLUMNS
        body.append(t.Let(name, first + s.lane % self.across * self.width))
        return {**at, self.column: t.Ident(name)}

    def _accumulate(self, at: dict[Index, t.Expr], inside: t.Expr) -> None:
        """Let each lane sum the terms of its slice, of every row."""
        lowerer = Lowerer(
            self.builder,
            at,
            self.body,
            vector=self.column if self.names else None,
            label=reduction_label(self.task),
        )
        start = self.part * self.slices + self.slice
        stride = self.parts * self.slices
        loop = slice_loop(lowerer, self.reduce, self.block.take, start, stride)
        self.body += [*self.block.declare(self.width), t.If(inside, (loop,))]

    def _join_and_store(self, at: dict[Index, t.Expr], inside: t.Expr) -> None:
        """Join the slices' totals, of as many rows at once as fit everywhere."""
        row_bytes = LANES_PER_GROUP * self.width * BYTES
        most = min(self.count, EVERYWHERE_BYTES // row_bytes)
        s, lanes = self.builder, LANES_PER_GROUP * most
        shared = shared_array(s, self.reduce, lanes, self.width)
        for first in range(0, self.count, most):
            totals = self.block.totals[first : first + most]
            starts = [LANES_PER_GROUP * n for n in range(len(totals))]
            for start, total in zip(starts, totals, strict=True):
                self.body.append(t.Assign(shared[s.lane + start], total))
            self.body += join(
                s,
                self.reduce.kind,
                shared,
                count=self.slices,
                position=self.slice,
                stride=self.across,
                starts=starts,
            )
            stored = self._store(at, shared, first, len(totals))
            self.body.append(t.If(t.all_of(self.slice.equals(0), inside), (stored,)))

    def _store(
        self, at: dict[Index, t.Expr], shared: t.Expr, first: int, count: int
    ) -> t.Stmt:
        """Return the loop that stores `count` rows, but none beyond the last."""
        s, row = self.builder, self.block.row
        parts = s.scratch("parts", self.reduce.type, written=True)
        here = t.Ident(s.name(row.name))
        places = [here if index == row else at[index] for index in self.outer]
        line = row_major(s, tuple(index.extent for index in self.outer), places)
        element = (line * self.parts + self.part) * self._columns + at[self.column]
        start = self.block.first + first
        end = t.call("min", start + count, s.extent(row.extent))
        own = shared[s.lane + (here - start) * LANES_PER_GROUP]
        store = parts.store(element // self.width, own)
        return t.count_up(here.name, start, end, 1, store)
