"""The shader of a row's scan: tile by tile, what came before a tile is carried along.

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

from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.cooperation import finish_steps, reduction_label
from kerngen.schedule.identities import accumulate, combine, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.scan_form import Scan
from kerngen.schedule.scan_lanes import LaneScan
from kerngen.schedule.scan_shape import RUNS, Shape
from kerngen.schedule.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class Line:
    """What of a row is scanned: the places from `start` to `end`, of a row of `length`.

    Places are counted in the order of the scan.  `place` is that of the lane among those
    that share the row; `inside` is whether there is such a row, if not all have one.
    """

    start: t.Expr
    end: t.Expr
    length: t.Expr
    place: t.Expr
    inside: t.Expr | None = None


def element_at(scan: Scan, place: t.Expr, length: t.Expr, width: int = 1) -> t.Expr:
    """Return where the element of a place lies in its row, or the first of several."""
    if not scan.is_backward:
        return place
    return t.Binary("-", length, place + width)


@final
class TileWriter:
    """Writes the scan of a line of one row."""

    def __init__(
        self, to: Lowerer, scan: Scan, shape: Shape, *, subgroups: bool
    ) -> None:
        """Write with a lowerer that knows the indices of the row."""
        self._to = to
        self._shader: ShaderBuilder = to.shader
        self._scan = scan
        self._shape = shape
        self._kind, self._type = scan.reduce.kind, scan.reduce.type
        # Subgroups join all lanes of a workgroup.
        self._lanes = LaneScan(self._shader, scan.reduce, shape, subgroups=subgroups)
        fresh = self._shader.fresh
        self._carry = t.Ident(fresh("carried"))
        self._runs = [t.Ident(fresh(f"run{number}")) for number in range(RUNS)]
        self._places = [t.Ident(fresh(f"place{number}")) for number in range(RUNS)]

    @property
    def _order(self) -> str:
        """The components of a vector in the order of the scan."""
        return COMPONENTS[::-1] if self._scan.is_backward else COMPONENTS

    def write(self, line: Line, carried: t.Expr | None) -> None:
        """Scan a line, with what is carried into it, if anything is.

        A row whose lanes may belong to several rows has one tile.
        """
        start = identity(self._shader, self._kind, self._type)
        self._to.block.append(t.Var(self._carry.name, carried or start))
        if self._shape.rows > 1:
            self._to.block.extend(self._tile(line.start, line))
            return
        first = t.Ident(self._shader.fresh("first"))
        body = (*self._tile(first, line), *self._lanes.again())
        loop = t.count_up(first.name, line.start, line.end, self._shape.tile, *body)
        self._to.block.append(loop)

    def _tile(self, first: t.Expr, line: Line) -> Iterator[t.Stmt]:
        """Yield what scans a tile."""
        shape = self._shape
        mine = first + line.place * shape.width
        for number, place in enumerate(self._places):
            yield t.Let(place.name, mine + number * shape.step)
        for place, run in zip(self._places, self._runs, strict=True):
            yield from self._read(place, run, line)
        ends = [self._end(run) for run in self._runs]
        vector = wgsl_type(self._type, RUNS)
        yield from self._lanes.write(t.Call(vector, tuple(ends)), line.place)
        for number, (place, run) in enumerate(
            zip(self._places, self._runs, strict=True)
        ):
            component = COMPONENTS[number]
            before = self._join(self._carry, self._lanes.before.member(component))
            steps = self._steps(place, self._result(before, run), line)
            yield t.If(self._inside(place, line), tuple(steps))
            whole = self._lanes.whole.member(component)
            yield accumulate(self._kind, self._carry, whole)

    def _inside(self, place: t.Expr, line: Line) -> t.Expr:
        inside = place < line.end
        return t.all_of(line.inside, inside) if line.inside is not None else inside

    def _read(self, place: t.Ident, run: t.Ident, line: Line) -> Iterator[t.Stmt]:
        """Yield what reads a run, and scans inside of it."""
        scan, width = self._scan, self._shape.width
        at = element_at(scan, place, line.length, width)
        inner = self._to.nested({scan.own: at})
        inner = replace(inner, vector=scan.own if width > 1 else None)
        value = inner.lower(scan.term)
        term = inner.widen(value, self._type) if width > 1 else value.expr
        inner.block.append(t.Assign(run, term))
        start = identity(self._shader, self._kind, self._type, width)
        yield t.Var(run.name, start)
        yield t.If(self._inside(place, line), tuple(inner.block))
        if width > 1:
            for before, after in zip(self._order, self._order[1:], strict=False):
                yield accumulate(self._kind, run.member(after), run.member(before))

    def _end(self, run: t.Ident) -> t.Expr:
        """Return the total of a run that is scanned."""
        return run.member(self._order[-1]) if self._shape.width > 1 else run

    def _result(self, before: t.Expr, run: t.Ident) -> Value:
        """Return the results of a run, by what comes before it."""
        scan = self._scan
        if self._shape.width == 1:
            return Value(before if scan.is_exclusive else self._join(before, run))
        vector = wgsl_type(self._type, LANES)
        inside: t.Expr = run
        if scan.is_exclusive:
            start = identity(self._shader, self._kind, self._type)
            moved = [start, *(run.member(part) for part in self._order[:-1])]
            inside = t.Call(vector, tuple(moved[:: -1 if scan.is_backward else 1]))
        return Value(self._join(t.Call(vector, (before,)), inside), wide=True)

    def _steps(self, place: t.Expr, result: Value, line: Line) -> list[t.Stmt]:
        """Return the stage's steps at a place of the row."""
        scan, task, width = self._scan, self._shader.task, self._shape.width
        at = t.Ident(self._shader.fresh(scan.index.name))
        named = t.Ident(self._shader.fresh(f"{reduction_label(task)}_{self._kind}"))
        element = element_at(scan, place, line.length, width)
        block: list[t.Stmt] = [t.Let(at.name, element), t.Let(named.name, result.expr)]
        inner = replace(
            self._to,
            at={**self._to.at, scan.index: at},
            block=block,
            vector=scan.index if width > 1 else None,
        )
        finish_steps(inner, task, scan.reduce, Value(named, result.wide), None)
        return block

    def _join(self, left: t.Expr, right: t.Expr) -> t.Expr:
        return combine(self._kind, left, right)
