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
from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import ReduceKind
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.identities import accumulate, combine, identity
from kerngen.schedule.lowering.values import COMPONENTS, LANES
from kerngen.schedule.scan.lanes import LaneScan
from kerngen.schedule.scan.shape import RUNS, Shape
from kerngen.schedule.scan.terms import ScanTerms
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class Line:
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
        self, terms: ScanTerms, shape: Shape, lanes: t.Expr, *, subgroups: bool
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

    def write(self, line: Line, carried: t.Expr | None = None) -> None:
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

    def _tile(self, first: t.Expr, line: Line) -> Iterator[t.Stmt]:
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

    def _read(self, place: t.Ident, run: t.Ident, line: Line) -> Iterator[t.Stmt]:
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


def _inside(place: t.Expr, line: Line) -> t.Expr:
    inside = place < line.end
    return inside if line.inside is None else t.all_of(line.inside, inside)
