"""Strategy `scan` across memory: a row per lane, with neighbours adjacent.

Rows that are few are cut into parts, so that there are lanes enough.
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
from kerngen.schedule.lowering.steps import last_extents, vector_tensors
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.per_element import start_invocation, unravel
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
AT_ONCE: Final = 8
"""How many terms a lane reads before it works on any of them."""

LONG: Final = 64
ENOUGH: Final = 1 << 17
"""Fewer lanes than that scan rows of more elements in parts: this many lanes, with eight
terms each, have 4 MB on its way from memory, as much as an H200 needs."""

MAX_PARTS: Final = 1024
"""A row has no more parts: each lane adds up the totals of all those before its own."""

Each: TypeAlias = Callable[[t.Expr, t.Expr], tuple[t.Stmt, ...]]
"""Writes what is done with a term, by where its element lies in the row."""


def lower_across(task: Task) -> Iterator[Variant]:
    """Yield the variants: for few rows and for many, vectors first."""
    names = vector_tensors(task.stage, task.values, task.domain[-1])
    extents = last_extents(task.stage, task.values, names)
    aligned = all_divisible((task.domain[-1].extent, *extents), LANES)
    if names and aligned != host.NEVER:
        yield from Across(task, LANES, names).variants(aligned)
    yield from Across(task, 1, set()).variants(host.ALWAYS)


@final
@dataclass(frozen=True, slots=True)
class Across:
    """A scan across memory by lanes that each take `width` neighbouring rows."""

    task: Task
    width: int
    names: set[str]

    @property
    def scan(self) -> Scan:
        """The stage's scan."""
        return scan_in(self.task)

    @property
    def outer(self) -> tuple[Index, ...]:
        """The indices of the rows without the last one, which lies along memory."""
        return tuple(x for x in self.task.domain[:-1] if x != self.scan.index)

    @property
    def rows(self) -> tuple[Index, ...]:
        """The indices of the rows: those of the domain without the scan's."""
        return (*self.outer, self.task.domain[-1])

    @property
    def cut(self) -> Cut:
        """How few rows are cut into parts."""
        lanes = host.maximum(host.ceil_div(domain_size(self.rows), self.width), 1)
        most = host.minimum(host.ceil_div(ENOUGH, lanes), MAX_PARTS)
        return Cut(self.scan.index, AT_ONCE, most)

    def variants(self, when: host.Guard) -> Iterator[Variant]:
        """Yield the variants: few and long rows in parts, all others whole."""
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
        """The name of the buffer of the totals of parts."""
        return self.task.scratch_name("parts")

    @property
    def name(self) -> str:
        """The variant's name."""
        return "edge" if self.width == 1 else "aligned"

    def _totals(self) -> DispatchShader:
        """Return the shader that leaves the total of each part."""
        lane = _Lane.named(self, self.cut)
        lane.body.append(lane.loop(lane.take))
        lane.body.append(lane.parts(written=True).store(lane.number, lane.total))
        summary = "first of two dispatches: the total of each part of a row."
        return self._finish(lane, self.cut, summary, "totals_")

    def _scanned(self, cut: Cut | None) -> DispatchShader:
        """Return the shader that scans rows, or their parts behind those before them."""
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

    `number` is its own among all, `part` that of its part; `beside` is how many lanes
    have a part of one number.  It goes from `start` to `end`, with a `total` so far.
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
        """Write what a lane needs to know, in a shader of its own."""
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
        if cut is None:
            return cls(terms, body, number, t.ZERO, beside, t.ZERO, length, total)
        return cls(terms, body, number, part, beside, start, end, total)

    @property
    def shader(self) -> ShaderBuilder:
        """The shader that is written."""
        return self.terms.to.shader

    def parts(self, *, written: bool) -> StorageBinding:
        """Return the totals of all parts: by row but for the last index, part and lane."""
        return self.shader.scratch(
            "parts", self.terms.scan.reduce.type, written=written
        )

    def take_earlier(self) -> None:
        """Write a loop that adds the totals of all earlier parts to this part's total."""
        shader, kind = self.shader, self.terms.scan.reduce.kind
        own, earlier = (t.Ident(shader.fresh(name)) for name in ("own", "earlier"))
        first = t.Binary("-", self.number, self.part * self.beside)
        take = self.parts(written=False).load(own + earlier * self.beside)
        taken = accumulate(kind, self.total, take)
        self.body.append(t.Let(own.name, first))
        self.body.append(t.count_up(earlier.name, 0, self.part, 1, taken))

    def loop(self, each: Each) -> t.Stmt:
        """Return the loop over the terms, several at once; `each` is done with one."""
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
        """Return the statements that add a term, then do the stage's steps."""
        scan = self.terms.scan
        take, steps = self.take(term, element), self.terms.steps(element, self.total)
        return (*steps, *take) if scan.is_exclusive else (*take, *steps)
