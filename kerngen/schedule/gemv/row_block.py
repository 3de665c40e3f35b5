"""Blocks of neighbouring rows of a product, which one invocation sums together.

The right factor, which is the same for all rows, is read once for a block.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

from kerngen.ir.nodes import Index
from kerngen.plan.size import ONE, Size, ceil_div
from kerngen.schedule.contraction import contraction_of
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.sizes import extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


@final
class RowBlock:
    """A block of `count` neighbouring rows of a product, from row `first` on.

    Past the last row, the last one is read again, and its sums are not stored.  With a `count`
    of 1 there is no block: `row` is None, and the row's index is treated like the others.
    With a `step` of 4, vectors of four rows are read, of which there is a whole number.
    """

    def __init__(
        self, shader: ShaderBuilder, task: Task, count: int, step: int = 1
    ) -> None:
        """Name the rows that are read, for a sum of products."""
        found = contraction_of(task)
        assert not isinstance(found, str), found
        self._shader = shader
        self.found = found
        self.row = found.row if count > 1 else None
        self.count = count
        self._step = step
        self.first = t.Ident(shader.fresh("first") if self.row else "")
        self._rows: tuple[t.Ident, ...] = ()
        if self.row:
            others = (shader.fresh(f"{self.row.name}_{n}") for n in self._later)
            self._rows = (self.first, *map(t.Ident, others))

    @property
    def _later(self) -> range:
        """The positions in the block that are read after the first one."""
        return range(self._step, self.count, self._step)

    @property
    def needed(self) -> Size:
        """The number of blocks that all rows need; 1 if there is no block."""
        if self.row is None:
            return ONE
        return ceil_div(extent_size(self.row.extent), self.count)

    def outer(self, domain: tuple[Index, ...]) -> tuple[Index, ...]:
        """Return the indices of a domain but that of the block's rows, if there is a block."""
        return tuple(index for index in domain if index != self.row)

    def place(self, number: t.Expr) -> list[t.Stmt]:
        """Return `let`s of the rows of block `number`; none if there is no block."""
        if self.row is None:
            return []
        last = self._extent(self.row) - self._step
        return [
            t.Let(self.first.name, number * self.count),
            *(
                t.Let(row.name, t.call("min", self.first + n, last))
                for n, row in zip(self._later, self._rows[1:], strict=True)
            ),
        ]

    def at(self, position: t.Expr) -> tuple[dict[Index, t.Expr], list[t.Expr]]:
        """Return the row's index value at a position in the block, and whether the row exists.

        Both are empty if there is no block.
        """
        if self.row is None:
            return {}, []
        name = t.Ident(self._shader.name(self.row.name))
        return {self.row: self.first + position}, [name < self._extent(self.row)]

    def lefts(self, inner: Lowerer) -> list[Value]:
        """Return the lowered left factor for each row of the block, or each vector of rows."""
        return [each.lower(self.found.left) for each in self.at_rows(inner)]

    def at_rows(self, inner: Lowerer) -> list[Lowerer]:
        """Return a copy of `inner` for each row that is read: a lowerer at that row."""
        if self.row is None:
            return [inner]
        places = [{**inner.at, self.row: row} for row in self._rows]
        return [replace(inner, at=at) for at in places]

    def _extent(self, row: Index) -> t.Expr:
        return self._shader.extent(row.extent)


def suffix(*places: tuple[int, int]) -> str:
    """Return a suffix of numbers, such as `_2_0`; a place is a number, and how many there are.

    Numbers of which there is only one are left out.
    """
    return "".join(f"_{number}" for number, count in places if count > 1)
