"""A reduction over ranges that are read, in the terms of strategy `ragged`.

    y[i] = sum[e when u32(e) >= start[i] and u32(e) < start[i + 1]] value[e] * x[column[e]]

A row is one result, its terms are those of its range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from kerngen.ir.analysis.conditions import conditional, unconditional
from kerngen.ir.analysis.reads import free_indices, loads
from kerngen.ir.nodes import Index, LocalValue, Reduce
from kerngen.ir.staging.keyed import Ragged, ranges_read
from kerngen.ir.staging.stages import Write
from kerngen.ir.walk import walk
from kerngen.plan.size import Size, ceil_div, maximum, minimum
from kerngen.schedule.lowering.argmax import partial_type, term_of
from kerngen.schedule.lowering.blocks import Blocks, accumulate_blocks
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import reduction_label, reduction_of
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.per_element import unravel
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

GROUP: Final = 256
"""The lanes of a workgroup."""

AT_ONCE: Final = 4
"""How many terms a lane reads before it adds any: it waits for all of them together."""

TURNS: Final = 16
"""After so many turns of its lanes, a row is long."""

PART: Final = GROUP * AT_ONCE * 4
MOST_PARTS: Final = 4096
"""A long row has a part for every so many terms; longer parts where those of all terms
would be more than that."""

MOST_ROOM: Final = 1 << 22
"""There is room for so many parts at most: 32 MiB of numbers."""


@final
@dataclass(frozen=True)
class RaggedRows:
    """A stage's reduction; `reduce` has the terms, without the conditions of the range."""

    task: Task
    lanes: int
    found: Ragged

    @cached_property
    def reduce(self) -> Reduce:
        """The reduction of all terms of a range."""
        return unconditional(self.found.reduce)

    @property
    def index(self) -> Index:
        """The index of the terms."""
        return self.reduce.indices[0]

    @property
    def rows_at_once(self) -> int:
        """How many rows a workgroup takes."""
        return GROUP // self.lanes

    @property
    def long(self) -> int:
        """From more terms on, a row is long."""
        return self.lanes * AT_ONCE * TURNS

    @property
    def terms(self) -> Size:
        """The number of terms of a row that has all of them."""
        return extent_size(self.index.extent)

    @property
    def rows(self) -> Size:
        """The number of rows."""
        return domain_size(self.task.domain)

    @property
    def part(self) -> Size:
        """The number of terms of a part."""
        turn = GROUP * AT_ONCE
        return maximum(ceil_div(self.terms, MOST_PARTS * turn) * turn, PART)

    @property
    def along(self) -> Index:
        """The index of the domain along which ranges follow each other."""
        return [x for x in self.task.domain if x in self.found.rows][-1]

    @property
    def room(self) -> Size:
        """How many parts there is room for: as many as if none shared a term with the next."""
        each = ceil_div(self.terms, min(self.long, PART)) * 2
        others = domain_size(x for x in self.task.domain if x != self.along)
        return minimum(each * others, MOST_ROOM)

    def bounds(self, lowerer: Lowerer) -> tuple[t.Expr, t.Expr]:
        """Write where the range of the lowerer's row begins and ends."""
        whole = conditional(reduction_of(self.task))
        along = terms_along(lowerer, whole, self.index)
        begin = t.Ident(lowerer.shader.fresh("begin"))
        first = t.call("min", along.begin, along.end)
        lowerer.block.append(t.Let(begin.name, first))
        return begin, along.end

    def lowerer(
        self, shader: ShaderBuilder, row: t.Ident, block: list[t.Stmt]
    ) -> Lowerer:
        """Return the writer of a row's terms; it names the row's indices first."""
        at = unravel(shader, block, self.task.domain, row)
        return Lowerer(shader, at, block, label=reduction_label(self.task))

    def accumulate(
        self, lowerer: Lowerer, begin: t.Expr, end: t.Expr, lanes: int
    ) -> t.Ident:
        """Let each of so many lanes take its terms; return its total.

        `begin` is that of the lane.
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
    """Return the ragged rows of a stage, or why it has none."""
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
    written = {step.tensor for step in task.stage.steps if isinstance(step, Write)}
    if written & {load.tensor for load in loads(reduction_of(task))}:
        return "it writes a tensor that its terms are read of"
    return RaggedRows(task, lanes, found)
