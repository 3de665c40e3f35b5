"""The shader of a row's scan: tile by tile, with the total so far carried along.

    terms of a lane, run by run            [x, x, x, x]   ...
    scanned inside of a run                [x, xx, xxx, xxxx]   ...
    total of each run, scanned over lanes  what comes before the run of a lane in the tile
    a result                               carried, before the run, inside of the run

Lanes beyond the end of a row hold what changes nothing; they never leave, as all of them
must come to the barriers.  The order of every sum is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

from kerngen.ir.nodes import Index, Reduce, ReduceKind
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import (
    finish_steps,
    reduction_label,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, combine, identity
from kerngen.schedule.lowering.joining import JOINED
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.scan.form import Scan
from kerngen.schedule.scan.shape import RUNS, ScanShape
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class RowPart:
    """The part of a row to scan: places `start` to `end`, of a row of `length`.

    Places are counted in the order of the scan.

    - `place`: the number of the lane among those that share the row
    - `inside`: whether there is such a row, where some lanes may have none
    - `is_short`: whether one tile is as long as the part
    """

    start: t.Expr
    end: t.Expr
    length: t.Expr
    place: t.Expr
    inside: t.Expr | None = None
    is_short: bool = False


@final
class TileWriter:
    """Writes the scan of one stretch of a row, tile by tile."""

    def __init__(
        self, terms: ScanTerms, shape: ScanShape, lanes: t.Expr, *, subgroups: bool
    ) -> None:
        """Write into the block of the lowerer that `terms` has; `lanes` share the row."""
        shader, reduce = terms.to.shader, terms.scan.reduce
        self._terms = terms
        self._shape = shape
        self._kind: ReduceKind = reduce.kind
        self._type = reduce.type
        self._start = identity(shader, self._kind, self._type)
        self._step = lanes * shape.width
        self._lanes = LaneScan(shader, reduce, shape, lanes, subgroups=subgroups)
        self._carried, self._first = (
            t.Ident(shader.fresh(name)) for name in ("carried", "first")
        )
        self._runs = [
            (
                t.Ident(shader.fresh(f"place{number}")),
                t.Ident(shader.fresh(f"run{number}")),
            )
            for number in range(RUNS)
        ]
        backward = terms.scan.is_backward
        self._order = COMPONENTS[::-1] if backward else COMPONENTS

    def write(self, line: RowPart, carried: t.Expr | None = None) -> None:
        """Write the scan of a stretch that begins with the total `carried`, if given."""
        body = self._terms.to.block
        body.append(t.Var(self._carried.name, carried or self._start))
        if line.is_short:
            body.extend(self._tile(line.start, line))
            return
        tile = (*self._tile(self._first, line), t.BARRIER)
        name = self._first.name
        step = self._shape.tile if self._shape.rows == 1 else self._step * RUNS
        body.append(t.count_up(name, line.start, line.end, step, *tile))

    def _tile(self, first: t.Expr, line: RowPart) -> Iterator[t.Stmt]:
        """Yield the statements that scan a tile."""
        mine = first + line.place * self._shape.width
        for number, (place, _) in enumerate(self._runs):
            yield t.Let(place.name, mine + self._step * number)
        for place, run in self._runs:
            yield from self._read(place, run, line)
        ends = tuple(self._end(run) for _, run in self._runs)
        totals = t.Call(wgsl_type(self._type, RUNS), ends)
        yield from self._lanes.write(totals, line.place)
        for component, (place, run) in zip(COMPONENTS, self._runs, strict=True):
            before = self._join(self._carried, self._lanes.before.member(component))
            element = self._terms.element(place, line.length)
            steps = self._terms.steps(element, self._result(before, run))
            yield t.If(_inside(place, line), steps)
            whole = self._lanes.whole.member(component)
            yield accumulate(self._kind, self._carried, whole)

    def _read(self, place: t.Ident, run: t.Ident, line: RowPart) -> Iterator[t.Stmt]:
        """Yield the statements that read a run and scan inside of it."""
        block = list[t.Stmt]()
        term = self._terms.term(self._terms.element(place, line.length), block)
        yield t.Var(run.name, self._terms.nothing)
        yield t.If(_inside(place, line), (*block, t.Assign(run, term)))
        if self._shape.width > 1:
            for before, after in zip(self._order, self._order[1:], strict=False):
                yield accumulate(self._kind, run.member(after), run.member(before))

    def _end(self, run: t.Ident) -> t.Expr:
        """Return the total of a run that is scanned."""
        return run.member(self._order[-1]) if self._shape.width > 1 else run

    def _result(self, before: t.Expr, run: t.Ident) -> t.Expr:
        """Return the results of a run, by what comes before it."""
        is_exclusive = self._terms.scan.is_exclusive
        if self._shape.width == 1:
            return before if is_exclusive else self._join(before, run)
        vector = wgsl_type(self._type, LANES)
        inside: t.Expr = run
        if is_exclusive:
            moved = [self._start, *(run.member(part) for part in self._order[:-1])]
            backward = self._terms.scan.is_backward
            inside = t.Call(vector, tuple(moved[::-1] if backward else moved))
        return self._join(t.Call(vector, (before,)), inside)

    def _join(self, left: t.Expr, right: t.Expr) -> t.Expr:
        return combine(self._kind, left, right)


def _inside(place: t.Expr, line: RowPart) -> t.Expr:
    inside = place < line.end
    return inside if line.inside is None else t.all_of(line.inside, inside)


# Reading the terms of a scan, and writing its results: one or four neighbours at once.


@final
@dataclass(frozen=True)
class ScanTerms:
    """Reads the terms of a scan, and writes its stage's steps.

    `to` has the indices of the row. With a `vector` index four neighbours are read at
    once: along that index of the rows, or along the scan itself.
    """

    to: Lowerer
    scan: Scan
    vector: Index | None

    @property
    def width(self) -> int:
        """How many elements are read at once: 1 or 4."""
        return 1 if self.vector is None else LANES

    @property
    def nothing(self) -> t.Expr:
        """The neutral value: added to a term, it changes nothing."""
        reduce = self.scan.reduce
        return identity(self.to.shader, reduce.kind, reduce.type, self.width)

    def element(self, place: t.Expr, length: t.Expr) -> t.Expr:
        """Return the number of an element, in the scan's order, by its place.

        Places are counted in the order of the scan.
        """
        if not self.scan.is_backward:
            return place
        along = self.width if self.vector == self.scan.index else 1
        return t.Binary("-", length, place + along)

    def term(self, element: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return an element's term; what it needs is written to `block` first."""
        scan, vector = self.scan, self.vector
        inner = self.to.nested({scan.own: element})
        along = scan.own if vector == scan.index else vector
        value = replace(inner, block=block, vector=along).lower(scan.term)
        return value.expr if vector is None else inner.widen(value, scan.reduce.type)

    def steps(self, element: t.Expr, result: t.Expr) -> tuple[t.Stmt, ...]:
        """Return the stage's steps for an element, given the scan's result there."""
        scan, shader = self.scan, self.to.shader
        at = t.Ident(shader.name(scan.index.name, "scan"))
        label = f"{reduction_label(shader.task)}_{scan.reduce.kind}"
        named = t.Ident(shader.name(label, "scan"))
        inner = self.to.nested({scan.index: at})
        inner.block.extend((t.Let(at.name, element), t.Let(named.name, result)))
        inner = replace(inner, vector=self.vector)
        value = Value(named, wide=self.vector is not None)
        finish_steps(inner, shader.task, scan.reduce, value, None)
        return tuple(inner.block)


# The scan of the totals of lanes that share a row, for four runs at once.
#
# Either in steps over workgroup memory, or by subgroups where the adapter has them:
#
#     at first   a  b   c   d    e     f     ...
#     step 1     a  ab  abc abcd bcde  cdef  ...
#     step 2     a  ab  abc abcd abcde abcdef ...
#
# WGSL has no `max` or `min` over the lanes before, so subgroups take such steps, too.


@final
class LaneScan:
    """Writes the scan over lanes: totals `before` a lane, and of the `whole`."""

    def __init__(
        self,
        shader: ShaderBuilder,
        reduce: Reduce,
        shape: ScanShape,
        lanes: t.Expr,
        *,
        subgroups: bool,
    ) -> None:
        """Scan with `shader` over `lanes` lanes; subgroups only scan a whole workgroup."""
        self._shader = shader
        self._shape = shape
        self._count = lanes
        self._kind: ReduceKind = reduce.kind
        self._type = reduce.type
        self._subgroups = subgroups and shape.rows == 1
        self.before, self.whole, self._total, self._side, self._apart = (
            t.Ident(shader.fresh(name))
            for name in ("before", "whole", "total", "side", "apart")
        )
        self._shared = self._declare()

    def write(self, totals: t.Expr, place: t.Expr) -> Iterator[t.Stmt]:
        """Yield the scan of all lanes' totals; `place` is the lane's number in its row.

        Before the next scan a barrier is needed: others may still read.
        """
        yield t.Var(self._total.name, totals)
        yield from self._by_subgroups() if self._subgroups else self._in_steps(place)

    @property
    def _nothing(self) -> t.Expr:
        return identity(self._shader, self._kind, self._type, RUNS)

    def _declare(self) -> t.Expr:
        """Declare two sides of workgroup memory: a step reads one and writes the other."""
        count = self._shape.workgroup * (1 if self._subgroups else 2)
        type_ = f"array<{wgsl_type(self._type, RUNS)}, {count}>"
        size = count * RUNS * value_bytes(self._type)
        return self._shader.workgroup_array("totals", type_, size)

    def _in_steps(self, place: t.Expr) -> Iterator[t.Stmt]:
        total, side, apart = self._total, self._side, self._apart
        lane, shared, all_lanes = self._shader.lane, self._shared, self._shape.workgroup
        mine = side + lane

        def take(distance: t.Expr) -> t.Stmt:
            other = shared[t.Binary("-", mine, distance)]
            taken = accumulate(self._kind, total, other)
            return t.If(place >= distance, (taken,))

        step = (
            t.Assign(shared[mine], total),
            t.BARRIER,
            *(take(apart * number) for number in range(1, JOINED)),
            t.Assign(side, t.Binary("-", t.u32(all_lanes), side)),
        )
        yield t.Var(side.name, t.ZERO)
        yield t.For(
            apart.name,
            t.ONE,
            apart < self._count,
            t.Assign(apart, t.u32(JOINED), "*="),
            step,
        )
        yield t.Assign(shared[mine], total)
        yield t.BARRIER
        yield t.Var(self.before.name, self._nothing)
        earlier = t.Assign(self.before, shared[t.Binary("-", mine, t.ONE)])
        yield t.If(place > 0, (earlier,))
        last = t.Binary("-", mine + self._count, place + 1)
        yield t.Let(self.whole.name, shared[last])

    def _by_subgroups(self) -> Iterator[t.Stmt]:
        total, apart, kind = self._total, self._apart, self._kind
        shader, shared = self._shader, self._shared
        size, place = shader.subgroup
        moved, number = (t.Ident(shader.fresh(name)) for name in ("moved", "number"))
        step = (
            t.Let(moved.name, t.call("subgroupShuffleUp", total, apart)),
            t.If(place >= apart, (accumulate(kind, total, moved),)),
        )
        yield t.For(
            apart.name,
            t.ONE,
            apart < size,
            t.Assign(apart, t.ONE, "<<="),
            step,
        )
        own = shader.lane // size
        lanes = self._shape.lanes
        last = t.Binary("-", t.call("min", size, lanes), t.ONE)
        yield t.If(place.equals(last), (t.Assign(shared[own], total),))
        yield t.BARRIER
        yield t.Let(moved.name, t.call("subgroupShuffleUp", total, t.ONE))
        yield t.Var(self.before.name, self._nothing)
        yield t.Var(self.whole.name, self._nothing)
        take = accumulate(kind, self.whole, shared[number])
        mine = t.If(number.equals(own), (t.Assign(self.before, self.whole),))
        count = (size + (lanes - 1)) // size
        yield t.count_up(number.name, 0, count, 1, mine, take)
        inside = t.Assign(self.before, combine(kind, self.before, moved))
        yield t.If(place > 0, (inside,))
