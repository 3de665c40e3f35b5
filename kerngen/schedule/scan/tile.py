"""The shader of a scan along memory: a row tile by tile, with the total so far carried along.

    terms of a lane, run by run            [a, b, c, d]              ...
    scanned inside of a run                [a, ab, abc, abcd]        ...
    totals of the runs, over all lanes     before: what precedes the lane's run in the tile
    results                                carried + before + [a, ab, abc, abcd]

Lanes past the end of a row have the neutral value as their terms.  They do not return, as
all lanes of a workgroup must reach its barriers.  The order of every sum is fixed.
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

    Places are numbered in the order of the scan: of a suffix scan, place 0 is the last
    element.

    - `place`: the number of the lane among those that share the row
    - `inside`: the condition that the lanes have a row, where rows share a workgroup
    - `is_short`: whether one tile is as long as the part, so that no loop is needed
    """

    start: t.Expr
    end: t.Expr
    length: t.Expr
    place: t.Expr
    inside: t.Expr | None = None
    is_short: bool = False


@final
class TileWriter:
    """Builds the scan of a part of a row, tile by tile.

    In WGSL:

        var carried = 0.0;
        for (var first = 0u; first < u.n; first += 1024u) {
            let place0 = first + lane * 4u;
            var run0 = vec4f(0.0);
            if (place0 < u.n) { run0 = x[(row * u.n + place0) >> 2u]; }
            run0.y += run0.x; run0.z += run0.y; run0.w += run0.z;
            ...                                          // the same for run1 to run3
            var total = vec4f(run0.w, run1.w, run2.w, run3.w);
            ...                                          // over lanes: `before` and `whole`
            if (place0 < u.n) { y[...] = vec4f(carried + before.x) + run0; }
            carried += whole.x;
            ...
        }
    """

    def __init__(
        self, terms: ScanTerms, shape: ScanShape, lanes: t.Expr, *, subgroups: bool
    ) -> None:
        """Write to the block of `terms.to`; `lanes` is how many lanes share a row."""
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
        # A vector's components lie in memory's order: a suffix scan begins with the last.
        backward = terms.scan.is_backward
        self._order = COMPONENTS[::-1] if backward else COMPONENTS

    def write(self, line: RowPart, carried: t.Expr | None = None) -> None:
        """Append the scan of a part; `carried` is the total of all terms before it, if any."""
        body = self._terms.to.block
        body.append(t.Var(self._carried.name, carried or self._start))
        if line.is_short:
            body.extend(self._tile(line.start, line))
            return
        # The next tile overwrites the totals in workgroup memory, which others may still
        # read.
        tile = (*self._tile(self._first, line), t.BARRIER)
        name = self._first.name
        # Where rows share a workgroup, how many lanes a row has is a pipeline's constant.
        step = self._shape.tile if self._shape.rows == 1 else self._step * RUNS
        body.append(t.count_up(name, line.start, line.end, step, *tile))

    def _tile(self, first: t.Expr, line: RowPart) -> Iterator[t.Stmt]:
        """Yield the statements that scan a tile."""
        # Read four runs, and scan inside of each.
        mine = first + line.place * self._shape.width
        for number, (place, _) in enumerate(self._runs):
            yield t.Let(place.name, mine + self._step * number)
        for place, run in self._runs:
            yield from self._read(place, run, line)
        # Scan the runs' totals over the lanes: all four at once, as one vector.
        ends = tuple(self._end(run) for _, run in self._runs)
        totals = t.Call(wgsl_type(self._type, RUNS), ends)
        yield from self._lanes.write(totals, line.place)
        # Write the results, run by run; all lanes' runs of a number precede those of the next.
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
        """Return the total of a run that is scanned: its last component."""
        return run.member(self._order[-1]) if self._shape.width > 1 else run

    def _result(self, before: t.Expr, run: t.Ident) -> t.Expr:
        """Return the results of a run, given the total of all before it.

        In WGSL:

            vec4f(before) + run                                      // `p <= j`
            vec4f(before) + vec4f(0.0, run.x, run.y, run.z)          // `p < j`
        """
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


# The terms and results of a scan: one element, or four neighbours, at a time.


@final
@dataclass(frozen=True)
class ScanTerms:
    """The terms of a scan, and the steps of its stage that read the results.

    `to` has the indices of the row.  With a `vector` index, four neighbours along it are
    read at once: it is the scan's own index, or one of the rows (`across.py`).
    """

    to: Lowerer
    scan: Scan
    vector: Index | None

    @property
    def width(self) -> int:
        """The number of elements that are read at once: 1 or 4."""
        return 1 if self.vector is None else LANES

    @property
    def nothing(self) -> t.Expr:
        """The neutral value of the reduction, as a vector if terms are vectors."""
        reduce = self.scan.reduce
        return identity(self.to.shader, reduce.kind, reduce.type, self.width)

    def element(self, place: t.Expr, length: t.Expr) -> t.Expr:
        """Return the index of the element at a place of the scan's order.

        Of a suffix scan over n elements, that is `n - (place + 1)`; of four neighbours it
        is the first in memory, `n - (place + 4)`.
        """
        if not self.scan.is_backward:
            return place
        along = self.width if self.vector == self.scan.index else 1
        return t.Binary("-", length, place + along)

    def term(self, element: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return an element's term; the statements that compute it are added to `block`."""
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


# The scan over the lanes that share a row: of the totals of four runs, as one vector.
#
# In workgroup memory, each step joins a lane's total with those of three lanes before it,
# 1, 2 and 3 apart, then 4, 8 and 12, then 16, 32 and 48 (a Kogge-Stone scan of radix four):
#
#     lane       0  1   2    3     4      5       ...
#     at first   a  b   c    d     e      f
#     apart 1    a  ab  abc  abcd  bcde   cdef
#     apart 4    a  ab  abc  abcd  abcde  abcdef
#
# In subgroups, a step joins two lanes by `subgroupShuffleUp`: WGSL has prefix operations for
# sums and products (`subgroupInclusiveAdd`), but none for `max` and `min`.


@final
class LaneScan:
    """Builds the scan over the lanes of a row, for four runs at once.

    The shader then has two variables, vectors with a component for each run: `before`, the
    total of the lanes before the own one, and `whole`, that of all lanes of the row.
    """

    def __init__(
        self,
        shader: ShaderBuilder,
        reduce: Reduce,
        shape: ScanShape,
        lanes: t.Expr,
        *,
        subgroups: bool,
    ) -> None:
        """Declare the workgroup memory; `lanes` is how many lanes share a row.

        Subgroups are only used where a row has the whole workgroup.
        """
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
        """Yield the statements of the scan; `place` is the lane's number in its row.

        The caller puts a barrier before the next scan: other lanes may still read the totals.
        """
        yield t.Var(self._total.name, totals)
        yield from self._by_subgroups() if self._subgroups else self._in_steps(place)

    @property
    def _nothing(self) -> t.Expr:
        return identity(self._shader, self._kind, self._type, RUNS)

    def _declare(self) -> t.Expr:
        """Declare the totals in workgroup memory, twice for the scan in steps.

        Each step writes one half (`side`) and reads it, and the next one the other half:
        so one barrier for each step is enough.
        """
        count = self._shape.workgroup * (1 if self._subgroups else 2)
        type_ = f"array<{wgsl_type(self._type, RUNS)}, {count}>"
        size = count * RUNS * value_bytes(self._type)
        return self._shader.workgroup_array("totals", type_, size)

    def _in_steps(self, place: t.Expr) -> Iterator[t.Stmt]:
        """Yield the scan in workgroup memory; a lane's `total` becomes that up to it.

        In WGSL:

            var side = 0u;
            for (var apart = 1u; apart < 64u; apart *= 4u) {
                totals[side + lane] = total;
                workgroupBarrier();
                if (lane >= apart) { total += totals[side + lane - apart]; }
                ...                                     // also apart * 2u and apart * 3u
                side = 64u - side;
            }
        """
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
        # `before` is the total of the lane to the left, `whole` that of the row's last lane.
        yield t.Assign(shared[mine], total)
        yield t.BARRIER
        yield t.Var(self.before.name, self._nothing)
        earlier = t.Assign(self.before, shared[t.Binary("-", mine, t.ONE)])
        yield t.If(place > 0, (earlier,))
        last = t.Binary("-", mine + self._count, place + 1)
        yield t.Let(self.whole.name, shared[last])

    def _by_subgroups(self) -> Iterator[t.Stmt]:
        """Yield the scan by subgroups: inside of each, then over the subgroups' totals."""
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
        # The last lane of each subgroup shares the subgroup's total.  A subgroup may be
        # larger than the workgroup, whose last lane it is then.
        own = shader.lane // size
        lanes = self._shape.lanes
        last = t.Binary("-", t.call("min", size, lanes), t.ONE)
        yield t.If(place.equals(last), (t.Assign(shared[own], total),))
        yield t.BARRIER
        yield t.Let(moved.name, t.call("subgroupShuffleUp", total, t.ONE))
        yield t.Var(self.before.name, self._nothing)
        yield t.Var(self.whole.name, self._nothing)
        # Each lane adds up all subgroups' totals; up to its own one, they are `before`.
        take = accumulate(kind, self.whole, shared[number])
        mine = t.If(number.equals(own), (t.Assign(self.before, self.whole),))
        count = (size + (lanes - 1)) // size
        yield t.count_up(number.name, 0, count, 1, mine, take)
        inside = t.Assign(self.before, combine(kind, self.before, moved))
        yield t.If(place > 0, (inside,))
