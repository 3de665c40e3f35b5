"""The rows, terms and parts of strategy `ragged`, and the loop of a lane.

    y[i] = sum[e when u32(e) >= start[i] and u32(e) < start[i + 1]] value[e] * x[column[e]]

A row has one result, and its terms are those of its range.  A part is a piece of a long row,
for a workgroup.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from kerngen.ir.analysis.conditions import conditional, unconditional
from kerngen.ir.analysis.reads import free_indices, loads
from kerngen.ir.nodes import Index, LocalValue, Reduce
from kerngen.ir.staging.keyed import Ragged, ranges_read
from kerngen.ir.walk import walk
from kerngen.plan.size import Size, ceil_div, maximum, minimum
from kerngen.schedule.lowering.argmax import partial_type, term_of
from kerngen.schedule.lowering.blocks import Blocks, accumulate_blocks
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import reduction_label, reduction_of
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import unravel
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

GROUP: Final = 256
"""The lanes of a workgroup."""

AT_ONCE: Final = 4
"""How many terms a lane reads before it adds any, so that it waits for memory once."""

TURNS: Final = 16
"""A row is long if it would take its lanes more turns than this, of `AT_ONCE` terms each."""

PART: Final = GROUP * AT_ONCE * 4
"""The least number of terms of a part: 4,096, four turns of a workgroup."""

MOST_PARTS: Final = 4096
"""The most parts of a row with all terms: parts are longer where there would be more."""

MOST_ROOM: Final = 1 << 22
"""The most parts that can be listed: two words for each are 32 MiB."""


@final
@dataclass(frozen=True)
class RaggedRows:
    """A stage's reduction over ranges that are read from tensors, with its rows and parts.

    - `lanes`: how many lanes share a short row
    - `found`: the reduction's condition, taken apart into the range and the rest
    """

    task: Task
    lanes: int
    found: Ragged

    @cached_property
    def reduce(self) -> Reduce:
        """The reduction of a row's terms, without the condition that bounds the range."""
        return unconditional(self.found.reduce)

    @property
    def index(self) -> Index:
        """The index of the terms."""
        return self.reduce.indices[0]

    @property
    def rows_at_once(self) -> int:
        """The number of short rows that a workgroup reduces side by side."""
        return GROUP // self.lanes

    @property
    def long(self) -> int:
        """The most terms of a short row: 64 for each lane."""
        return self.lanes * AT_ONCE * TURNS

    @property
    def terms(self) -> Size:
        """The number of terms of all rows: the length of the axis in which the ranges lie."""
        return extent_size(self.index.extent)

    @property
    def rows(self) -> Size:
        """The number of rows."""
        return domain_size(self.task.domain)

    @property
    def part(self) -> Size:
        """The number of terms of a part of a long row; a row's last part may have fewer."""
        turn = GROUP * AT_ONCE
        return maximum(ceil_div(self.terms, MOST_PARTS * turn) * turn, PART)

    @property
    def along(self) -> Index:
        """The innermost index of the domain that the ranges depend on: i of `start[i]`."""
        return [x for x in self.task.domain if x in self.found.rows][-1]

    @property
    def room(self) -> Size:
        """The most parts that the list of long rows can hold: enough if no two ranges overlap.

        A long row has more terms than `long`, and its last part may have few: rows without
        common terms have less than two parts for each `min(long, PART)` terms.
        """
        each = ceil_div(self.terms, min(self.long, PART)) * 2
        others = domain_size(x for x in self.task.domain if x != self.along)
        return minimum(each * others, MOST_ROOM)

    def bounds(self, lowerer: Lowerer) -> tuple[t.Expr, t.Expr]:
        """Emit where the range of a row begins and ends, clamped to the axis; return both."""
        whole = conditional(reduction_of(self.task))
        along = terms_along(lowerer, whole, self.index)
        begin = t.Ident(lowerer.shader.fresh("begin"))
        # A range that ends before it begins is empty, and `end - begin` must not wrap.
        first = t.call("min", along.begin, along.end)
        lowerer.block.append(t.Let(begin.name, first))
        return begin, along.end

    def lowerer(
        self, shader: ShaderBuilder, row: t.Ident, block: list[t.Stmt]
    ) -> Lowerer:
        """Emit the values of a row's indices; return a lowerer at that row, for its terms."""
        at = unravel(shader, block, self.task.domain, row)
        return Lowerer(shader, at, block, label=reduction_label(self.task))

    def accumulate(
        self, lowerer: Lowerer, begin: t.Expr, end: t.Expr, lanes: int
    ) -> t.Ident:
        """Emit a lane's loop over its terms; return the variable of its total.

        The lane reduces every `lanes`-th term: the one at `begin`, and so on up to `end`.
        """
        shader, reduce = lowerer.shader, self.reduce

        def term(at: t.Ident, block: list[t.Stmt]) -> t.Expr:
            inner = replace(lowerer.nested({self.index: at}), block=block)
            return term_of(inner, reduce, wide=False)

        counter = shader.name(self.index.name)
        turn = t.u32(AT_ONCE * lanes)
        blocks = Blocks(counter, begin, end, lanes, turn, AT_ONCE)
        total = t.Ident(shader.fresh(f"{lowerer.label}_{reduce.kind}"))
        reduced = reduce.kind, partial_type(reduce), 1
        lowerer.block.extend(accumulate_blocks(shader, total, reduced, blocks, term))
        return total


def ragged_of(task: Task, lanes: int = GROUP) -> RaggedRows | str:
    """Return the ragged rows that a stage reduces, or the reason why it reduces none."""
    if task.reduction is None:
        return "the stage holds no reduction"
    found = ranges_read(conditional(task.reduction))
    if found is None:
        return "no tensors hold where the terms of each result begin and end"
    bounds = [bound for bound, _ in (*found.begins, *found.ends)]
    nodes = [node for bound in bounds for node in walk(bound)]
    if any(isinstance(node, Reduce | LocalValue) for node in nodes):
        return "what bounds the terms is computed in the same stage"
    if not all(free_indices(bound) <= {*task.domain} for bound in bounds):
        return "what bounds the terms is another one for each of them"
    if {*task.stage.tensors_written} & {
        load.tensor for load in loads(reduction_of(task))
    }:
        return "it writes a tensor that its terms are read of"
    return RaggedRows(task, lanes, found)
