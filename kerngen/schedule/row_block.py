"""Neighbouring rows of a product that one invocation sums together.

What they have in common, the right factor, is read once for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.contraction import LEFT, RIGHT, product_of
from kerngen.schedule.cooperation import reduction_label
from kerngen.schedule.identities import accumulate, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.task import Task, host_extent
from kerngen.schedule.values import Value
from kerngen.shader import tree as t


@final
class RowBlock:
    """`count` rows from `first` on, and a total of each: a number, or one per lane of 4.

    A row beyond the last is read as the last one.  What it sums is never stored.
    """

    def __init__(self, shader: ShaderBuilder, task: Task, count: int) -> None:
        """Name the rows and their totals, for a sum of products that has a row."""
        self._shader = shader
        self.found, self.row = product_of(task)
        self.count = count
        self.first = t.Ident(shader.fresh("first"))
        label = reduction_label(task)
        others = (shader.fresh(f"{self.row.name}_{n}") for n in range(1, count))
        self._rows = (self.first, *map(t.Ident, others))
        self.totals = tuple(
            t.Ident(shader.fresh(f"{label}_sum_{n}")) for n in range(count)
        )

    @property
    def needed(self) -> t.Expr:
        """How many blocks hold all rows."""
        return (self._extent + (self.count - 1)) // self.count

    @property
    def host_needed(self) -> str:
        """The Python text of it."""
        return f"ceil_div({host_extent(self.row.extent)}, {self.count})"

    @property
    def _extent(self) -> t.Expr:
        return self._shader.extent(self.row.extent)

    def place(self, number: t.Expr) -> list[t.Stmt]:
        """Name the rows of the block of a number."""
        last = self._extent - 1
        return [
            t.Let(self.first.name, number * self.count),
            *(
                t.Let(row.name, t.call("min", self.first + n, last))
                for n, row in enumerate(self._rows[1:], start=1)
            ),
        ]

    def declare(self, width: int) -> list[t.Stmt]:
        """Start every total."""
        zero = identity("sum", self.found.type, width)
        return [t.Var(total.name, zero) for total in self.totals]

    def take(self, inner: Lowerer) -> None:
        """Write how every row takes a term, or a vector of four."""
        right = inner.lower(self.found.right)
        name = inner.shader.fresh("right")
        inner.block.append(t.Let(name, right.expr))
        shared = Value(t.Ident(name), right.wide)
        for row, total in zip(self._rows, self.totals, strict=True):
            own = replace(inner, at={**inner.at, self.row: row})
            factors = {LEFT: own.lower(self.found.left), RIGHT: shared}
            term = replace(own, locals=factors).lower(self.found.term)
            wide = inner.vector is not None
            value = own.widen(term, self.found.type) if wide else term.expr
            inner.block.append(accumulate("sum", total, value))
