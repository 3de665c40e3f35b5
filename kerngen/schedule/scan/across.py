"""Strategy `scan` across memory: each lane scans a row, neighbouring lanes neighbouring rows.

For `y[i, j] = sum[p when p <= i] x[p, j]`, a lane goes down a column of memory, or four
columns as a vector, so that a workgroup reads contiguous memory in each step:

    lane       0  1  2  3 ...
    p = 0      x  x  x  x          read side by side
    p = 1      x  x  x  x
      ...      v  v  v  v          total += term; y[...] = total

Where rows are few, they are cut into parts, with a lane for each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.ir.nodes import Index
from kerngen.plan import size as host
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder, StorageBinding
from kerngen.schedule.lowering.cooperation import reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate
from kerngen.schedule.lowering.positions import start_invocation, unravel
from kerngen.schedule.lowering.steps import last_extents, vector_tensors
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scan.form import Scan, scan_in
from kerngen.schedule.scan.shape import Cut
from kerngen.schedule.scan.tile import ScanTerms
from kerngen.schedule.sizes import (
    all_divisible,
    domain_size,
    extent_size,
    loop_trips,
    to_wgsl,
)
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

GROUP: Final = 64
"""The number of lanes of a workgroup."""

AT_ONCE: Final = 8
"""How many terms a lane reads before it adds any, so that it waits for memory once."""

LONG: Final = 64
"""The longest row, in elements, that is never cut into parts."""

ENOUGH: Final = 1 << 17
"""How many lanes the parts of rows are to give work to.

This many lanes, with eight terms of four bytes each, keep 4 MB on the way from memory, as
much as an H200 needs.  Rows are cut where their lanes are fewer than half of it.
"""

MAX_PARTS: Final = 1024
"""The most parts of a row: each lane adds up the totals of all parts before its own."""

Each: TypeAlias = Callable[[t.Expr, t.Expr], tuple[t.Stmt, ...]]
"""Returns the statements for one term, given the term and its element's number in the row."""


def lower_across(task: Task) -> Iterator[Variant]:
    """Yield the variants, vectors first: for many rows, and for few rows cut into parts."""
    names = vector_tensors(task.stage, task.values, task.domain[-1])
    extents = last_extents(task.stage, task.values, names)
    aligned = all_divisible((task.domain[-1].extent, *extents), LANES)
    if names and aligned != host.NEVER:
        yield from Across(task, LANES, names).variants(aligned)
    yield from Across(task, 1, set()).variants(host.ALWAYS)


@final
@dataclass(frozen=True, slots=True)
class Across:
    """A scan across memory, in which a lane scans `width` neighbouring rows, 1 or 4, at once.

    `names` are the tensors that are bound as arrays of vectors.
    """

    task: Task
    width: int
    names: set[str]

    @property
    def scan(self) -> Scan:
        """The stage's scan."""
        return scan_in(self.task)

    @property
    def outer(self) -> tuple[Index, ...]:
        """The indices of the rows but the last one, along which memory is contiguous."""
        return tuple(x for x in self.task.domain[:-1] if x != self.scan.index)

    @property
    def rows(self) -> tuple[Index, ...]:
        """The indices of the rows: those of the domain but the one that is scanned."""
        return (*self.outer, self.task.domain[-1])

    @property
    def cut(self) -> Cut:
        """How rows are cut into parts, where they are few."""
        # So many parts that there are about `ENOUGH` lanes.
        lanes = host.maximum(host.ceil_div(domain_size(self.rows), self.width), 1)
        most = host.minimum(host.ceil_div(ENOUGH, lanes), MAX_PARTS)
        return Cut(self.scan.index, AT_ONCE, most)

    def variants(self, when: host.Guard) -> Iterator[Variant]:
        """Yield the variants for calls with `when`: few, long rows in parts, others not."""
        whole = self.cut.is_needless(LONG, self.rows, ENOUGH // 2 * self.width)
        if (wanted := host.all_of(when, whole)) != host.NEVER:
            yield Variant(self.name, wanted, (self._scanned(None),))
        if whole != host.ALWAYS:
            length = domain_size(self.rows) * self.cut.count
            scratch = Scratch(self.parts_name, length)
            shaders = self._totals(), self._scanned(self.cut)
            yield Variant(f"parts_{self.name}", when, shaders, (scratch,))

    @property
    def parts_name(self) -> str:
        """The name of the scratch buffer with the totals of parts."""
        return self.task.scratch_name("parts")

    @property
    def name(self) -> str:
        """The variant's name."""
        return "edge" if self.width == 1 else "aligned"

    def _totals(self) -> DispatchShader:
        """Return the first shader of two: it stores the total of each part."""
        lane = _Lane.named(self, self.cut)
        lane.body.append(lane.loop(lane.take))
        lane.body.append(lane.parts(written=True).store(lane.number, lane.total))
        summary = "first of two dispatches: the total of each part of a row."
        return self._finish(lane, self.cut, summary, "totals_")

    def _scanned(self, cut: Cut | None) -> DispatchShader:
        """Return the shader that scans whole rows, or with `cut` the second one of two.

        The second one scans each part of a row behind the parts before it.
        """
        lane = _Lane.named(self, cut)
        if cut is not None:
            lane.take_earlier()
        lane.body.append(lane.loop(lane.each))
        if cut is None:
            return self._finish(lane, cut, "each row by an invocation, read once.", "")
        summary = "second of two dispatches: each part behind those before it."
        return self._finish(lane, cut, summary, "behind_")

    def _finish(
        self, lane: _Lane, cut: Cut | None, summary: str, variant: str
    ) -> DispatchShader:
        """Return the finished shader; a lane's loops go over a part and the earlier parts."""
        lanes = host.ceil_div(domain_size(self.rows), self.width)
        length: host.Size = extent_size(self.scan.index.extent)
        earlier: host.Size = host.ZERO
        if cut is not None:
            lanes, length, earlier = lanes * cut.count, cut.length, cut.count
        trips = host.ceil_div(length, AT_ONCE) + earlier
        return lane.shader.finish(
            lane.body,
            groups=host.ceil_div(lanes, GROUP),
            workgroup_size=GROUP,
            summary=summary,
            variant=f"{variant}{self.name}",
            trips=loop_trips(self.task, {self.scan.reduce: trips}),
        )


@final
@dataclass(frozen=True)
class _Lane:
    """The rows, or the part of each, that a lane scans.

    - `number`: the lane's number in the dispatch
    - `part`: the number of its part in the row
    - `beside`: how many lanes lie side by side along memory
    - `start`, `end`: where its loop begins and ends in the row
    - `total`: the variable of the total so far
    """

    terms: ScanTerms
    body: list[t.Stmt]
    number: t.Expr
    part: t.Expr
    beside: t.Expr
    start: t.Expr
    end: t.Expr
    total: t.Ident

    @classmethod
    def named(cls, of: Across, cut: Cut | None) -> _Lane:
        """Begin a shader, and emit the numbers that a lane needs.

        For parts of rows, lanes are numbered by outer rows, parts, and places in memory:

            let beside = u.n >> 2u;
            let size = ...; let count = ...;            // a part's length, parts of a row
            let element = (workgroup.y * grid.x + workgroup.x) * 64u + lane;
            if (element >= count * beside) { return; }
            let part = element / beside % count;
            let start = part * size;
            let end = min(start + size, u.m);
            let j = element % beside * 4u;
            var total = vec4f(0.0);
        """
        # Where tensors are vectors of four rows, so are the totals of parts.
        bound = {*of.names, of.parts_name} if of.names else of.names
        shader = ShaderBuilder(of.task, dict.fromkeys(bound, LANES))
        beside, part, start, end, size, count, total = (
            t.Ident(shader.fresh(name))
            for name in ("beside", "part", "start", "end", "size", "count", "total")
        )
        *outer, column = of.rows
        known: dict[host.Size, t.Expr] = {}
        named: list[t.Stmt] = [
            t.Let(beside.name, shader.extent(column.extent) // of.width)
        ]
        lanes = shader.size(tuple(outer)) * beside
        if cut is not None:
            known = {cut.length: size}
            named += [
                t.Let(size.name, to_wgsl(cut.length, shader)),
                t.Let(count.name, to_wgsl(cut.count, shader, known)),
            ]
            lanes = lanes * count
        started, number = start_invocation(shader, GROUP, lanes)
        body = [*named, *started]
        # The lane's number is outer row, part, place in memory, from high to low.
        line, place = number // beside, number % beside * of.width
        length = shader.extent(of.scan.index.extent)
        if cut is not None:
            body += [
                t.Let(part.name, line % count),
                t.Let(start.name, part * size),
                t.Let(end.name, t.call("min", start + size, length)),
            ]
            line = line // count
        at = unravel(shader, body, tuple(outer), line) if outer else {}
        at[column] = t.Ident(shader.name(column.name))
        body.append(t.Let(shader.name(column.name), place))
        to = Lowerer(shader, at, body, label=reduction_label(of.task))
        terms = ScanTerms(to, of.scan, column if of.width > 1 else None)
        body.append(t.Var(total.name, terms.nothing))
        # A whole row is part 0, from 0 to its length.
        if cut is None:
            return cls(terms, body, number, t.ZERO, beside, t.ZERO, length, total)
        return cls(terms, body, number, part, beside, start, end, total)

    @property
    def shader(self) -> ShaderBuilder:
        """The builder of the shader."""
        return self.terms.to.shader

    def parts(self, *, written: bool) -> StorageBinding:
        """Return the buffer of the totals of all parts, in the order of the lanes."""
        return self.shader.scratch(
            "parts", self.terms.scan.reduce.type, written=written
        )

    def take_earlier(self) -> None:
        """Append a loop that adds the totals of all earlier parts to this part's total.

        In WGSL:

            let own = element - part * beside;          // the lane of part 0
            for (var earlier = 0u; earlier < part; earlier++) {
                total += parts[own + earlier * beside];
            }
        """
        shader, kind = self.shader, self.terms.scan.reduce.kind
        own, earlier = (t.Ident(shader.fresh(name)) for name in ("own", "earlier"))
        first = t.Binary("-", self.number, self.part * self.beside)
        take = self.parts(written=False).load(own + earlier * self.beside)
        taken = accumulate(kind, self.total, take)
        self.body.append(t.Let(own.name, first))
        self.body.append(t.count_up(earlier.name, 0, self.part, 1, taken))

    def loop(self, each: Each) -> t.Stmt:
        """Return the loop over the terms, eight in a turn; `each` returns one's statements.

        In WGSL:

            for (var first = 0u; first < u.m; first += 8u) {
                let place0 = first;
                var term0 = vec4f(0.0);
                if (place0 < u.m) { term0 = x[(place0 * u.n + j) >> 2u]; }
                ...                                     // all reads, then all statements
                if (place0 < u.m) { total += term0; y[...] = total; }
                ...
            }
        """
        shader, terms = self.shader, self.terms
        first = t.Ident(shader.fresh("first"))
        length = shader.extent(terms.scan.index.extent)
        reads, works = list[t.Stmt](), list[t.Stmt]()
        for number in range(AT_ONCE):
            place, term = (
                t.Ident(shader.fresh(f"{name}{number}")) for name in ("place", "term")
            )
            inside, block = place < self.end, list[t.Stmt]()
            element = terms.element(place, length)
            value = terms.term(element, block)
            reads += [
                t.Let(place.name, first + number),
                t.Var(term.name, terms.nothing),
                t.If(inside, (*block, t.Assign(term, value))),
            ]
            works.append(t.If(inside, each(term, element)))
        return t.count_up(first.name, self.start, self.end, AT_ONCE, *reads, *works)

    def take(self, term: t.Expr, element: t.Expr) -> tuple[t.Stmt, ...]:
        """Return the statements that add a term to the total."""
        del element
        return (accumulate(self.terms.scan.reduce.kind, self.total, term),)

    def each(self, term: t.Expr, element: t.Expr) -> tuple[t.Stmt, ...]:
        """Return the statements that add a term and do the stage's steps with the total.

        The steps are first where a result is without its own term, as in `p < i`.
        """
        scan = self.terms.scan
        take, steps = self.take(term, element), self.terms.steps(element, self.total)
        return (*steps, *take) if scan.is_exclusive else (*take, *steps)
