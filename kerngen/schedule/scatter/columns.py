"""Shaders over the terms of a keyed reduction that are sorted by bin, column by column.

An invocation joins a part of the terms, which follow each other, in one column of the results
or in four.  Where a bin's run began in an earlier part, its sum here is carried (`lists.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.ir.types import Scalar
from kerngen.plan.size import Size, ceil_div
from kerngen.schedule.lowering.builder import ShaderBuilder, StorageBinding
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.positions import start_invocation, unravel
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.sizes import domain_size, to_wgsl
from kerngen.shader import tree as t

GROUP: Final = 256
"""The lanes of a workgroup.

With 64, an H200 takes twice the time to write the 154 MB of an embedding's gradient.
"""

RUN: Final = 8
"""How many sorted terms an invocation joins: those of a part."""

CARRIES: Final = 128
"""How many carried parts an invocation of the next level joins."""


@final
@dataclass(frozen=True)
class Level:
    """A level of joining: the items that a dispatch joins, a part of them in each invocation.

    Level 0 joins the sorted terms, 8 to a part; level 1 joins what those parts carry, 128
    to a part.
    """

    found: Scatter
    number: int

    @property
    def count(self) -> Size:
        """The number of items."""
        terms = self.found.term_count
        return ceil_div(terms, RUN) if self.number else terms

    @property
    def each(self) -> int:
        """The number of items of a part, which one invocation joins."""
        return CARRIES if self.number else RUN

    @property
    def stride(self) -> int:
        """The most terms that are joined in an item: 1 on level 0, 8 on level 1."""
        return RUN if self.number else 1

    @property
    def groups(self) -> Size:
        """The number of parts, each of which may carry a result."""
        return ceil_div(self.count, self.each)


@final
class ColumnShader:
    """A shader with an invocation for each part of the terms, and for each column or four.

    - `lanes`: the number of columns of an invocation: 1, or 4 as a vector
    - `part`: the number of its part; `at`: the values of the indices of its first column
    - `total`, `run`: variables of the total so far, and of the bin that it belongs to
    - `limit`: the number of bins, which is also the key of terms that belong to no bin
    """

    def __init__(self, found: Scatter, names: frozenset[str], parts: Size) -> None:
        """Start the shader; `names` are the tensors bound as arrays of vectors.

        In WGSL, where columns are four and there are 8 terms to a part:

            let element = (workgroup.y * grid.x + workgroup.x) * 256u + lane;
            if (element >= ((u.n + 7u) >> 3u) * (u.d >> 2u)) { return; }
            let part = element / (u.d >> 2u);
            let column = element % (u.d >> 2u);
            let j = column * 4u;
        """
        task, self.found, self.lanes = found.task, found, LANES if names else 1
        # Where columns are read by four, so are the results of bins.
        kept = task.scratch_name("bins")
        lanes_of = dict.fromkeys((*names, kept), LANES) if names else {}
        self.shader = shader = ShaderBuilder(task, lanes_of)
        self.keys = shader.scratch("keys", Scalar.U32, written=False)
        self.limit = shader.size(found.bins)
        self._width = shader.size(found.columns) // self.lanes
        all_ = to_wgsl(parts, shader) * self._width
        self.body, element = start_invocation(shader, GROUP, all_)
        self.part, self._column = element, t.ZERO
        self.at: dict[Index, t.Expr] = {}
        if found.columns:
            self.part, self._column = map(self.fresh, ("part", "column"))
            self.let(self.part, element // self._width)
            self.let(self._column, element % self._width)
            first = self._column * self.lanes
            self.at = unravel(shader, self.body, found.columns, first)
        self.total, self.run = map(self.fresh, ("total", "run"))

    def fresh(self, name: str) -> t.Ident:
        """Return a variable with an unused name."""
        return t.Ident(self.shader.fresh(name))

    def let(self, name: t.Expr, value: t.Expr) -> None:
        """Append a `let` of a value to the body."""
        assert isinstance(name, t.Ident)
        self.body.append(t.Let(name.name, value))

    def bins(self) -> StorageBinding:
        """Bind and return the buffer of the bins' results and, behind them, carried results."""
        return self.shader.scratch("bins", self.found.reduce.type, written=True)

    def place(self, bin_: t.Expr) -> t.Expr:
        """Return the address of a bin's result in the invocation's column."""
        return bin_ * self._width + self._column

    def carried(self, level: int, part: t.Expr) -> t.Expr:
        """Return the address of the result that part number `part` of a level carries."""
        before = self.limit
        for number in range(level):
            before = before + to_wgsl(Level(self.found, number).groups, self.shader)
        return self.place(before + part)

    @property
    def is_first_column(self) -> t.Expr:
        """The condition that this is the first column, whose invocation marks a bin for all."""
        return self._column.equals(0)

    def continues(self, at: t.Expr) -> t.Expr:
        """Return the condition that sorted term `at` is in the same bin as the one before."""
        before = self.keys.load(t.call("max", at, 1) - 1).equals(self.keys.load(at))
        return t.all_of(at > 0, self.keys.load(at) < self.limit, before)

    def nothing(self) -> t.Expr:
        """Return the reduction's neutral value, as a vector for four columns."""
        reduce = self.found.reduce
        return identity(self.shader, reduce.kind, reduce.type, self.lanes)

    def take(self, value: t.Expr) -> t.Stmt:
        """Return the statement that joins a value to the total."""
        return accumulate(self.found.reduce.kind, self.total, value)

    def finish(
        self, parts: Size, summary: str, variant: str, trips: Size
    ) -> DispatchShader:
        """Return the finished shader, with invocations for `parts` parts in all columns."""
        columns = domain_size(self.found.columns)
        wide = self.lanes == LANES
        return self.shader.finish(
            self.body,
            groups=ceil_div(parts * columns, GROUP * self.lanes),
            workgroup_size=GROUP,
            summary=summary,
            variant=variant if wide else f"{variant}.edge",
            trips=trips,
        )
