"""One vector of a tile that an invocation loads: from where, and how it is stored.

Of a tile with more vectors than invocations, each invocation has several units, a tile's
vectors being dealt out to all in turn.  `operand.py` shows the WGSL of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.lowering.identities import identity
from kerngen.schedule.lowering.linear import Linear
from kerngen.schedule.lowering.values import COMPONENTS, LANES
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.gemm.operand import Operand


@final
class Unit:
    """One vector of a tile that an invocation loads, or four lines that it transposes.

    An invocation has `turns` units, so that all invocations together load the whole tile.
    """

    def __init__(self, operand: Operand, number: int, turns: int) -> None:
        self._operand = operand
        self._number = number
        self._turn = f"_{number}" if turns > 1 else ""
        self.registers = self._name_lines("load")
        self._places = self._name_lines(operand.outer.name)
        self._unit, self._at = self._name("unit"), self._name("at")
        self._over = self._name(operand.counter)
        self._starts = self._name_lines("from") if operand.linear else []
        self._ends = self._name_lines("end") if self._starts and operand.clamps else []
        named = f"{operand.name}{self._turn}"
        if operand.group:
            self._neighbours, self._are_found = operand.neighbours(named)
            self._digits, self._is_counted = operand.digits(named)

    def _name(self, what: str, line: str = "") -> t.Ident:
        o = self._operand
        return t.Ident(o.builder.fresh(f"{o.name}_{what}{self._turn}{line}"))

    def _name_lines(self, what: str) -> list[t.Ident]:
        if self._operand.lines == 1:
            return [self._name(what)]
        return [self._name(what, f"_line_{n}") for n in range(self._operand.lines)]

    def place(self) -> Iterator[t.Stmt]:
        """Yield `let`s of the unit's place in the tile, and of its places in memory."""
        o = self._operand
        unit = o.builder.lane + self._number * o.tiling.invocations
        # Neighbouring units are neighbours in memory, so that reads are coalesced.
        if o.turns_over:
            blocks = o.tiling.k // VECTOR
            at, over = self._unit // blocks, self._unit % blocks * VECTOR
        elif o.along_terms:
            at, over = self._unit // o.tiling.k, self._unit % o.tiling.k
        else:
            at, over = self._unit % o.line, self._unit // o.line
        yield t.Let(self._unit.name, unit)
        yield t.Let(self._at.name, at)
        yield t.Let(self._over.name, over)
        if o.group:
            if not self._are_found:
                yield from self._neighbours.find(o.first(self._at))
                yield from o.name_places(self._neighbours)
            return
        for line, place in enumerate(self._places):
            yield t.Let(place.name, o.inside(o.first(self._at, line)))
        if o.linear:
            yield from self._start(o.linear)

    def _start(self, linear: Linear) -> Iterator[t.Stmt]:
        """Name the addresses of term 0; each turn adds the same step to all of them.

        With `clamps`, name those of the last term, too.  That may be before the unit's own
        first term: then the step between them wraps, as u32 does, and the address is right.  (Not
        so where terms are contiguous, whose steps are divided by 4; such terms come in whole
        turns.)
        """
        o = self._operand
        for start, place in zip(self._starts, self._places, strict=True):
            at = o.batch | {o.outer: place, o.over[0]: self._over}
            yield t.Let(start.name, linear.address(o.builder, at, o.lanes))
        for start, end in zip(self._starts, self._ends, strict=False):
            count = t.Binary("-", o.last_term, self._over)
            step = linear.step(o.builder, o.over[0], count, o.lanes)
            yield t.Let(end.name, start + step)

    def find_term(self, first: t.Expr) -> Iterator[t.Stmt]:
        """Yield the indices of the first turn's term, unless another unit counts them."""
        if self._operand.group and not self._is_counted:
            yield from self._digits.begin(first + self._over)

    def guarded(self, body: list[t.Stmt]) -> list[t.Stmt]:
        """Return statements, under a condition if the tile has no unit for some invocations.

        The condition is `if (b_unit < 64u)` where 128 invocations load 64 units.
        """
        o = self._operand
        if (self._number + 1) * o.tiling.invocations <= o.count:
            return body
        return [t.If(self._unit < o.count, tuple(body))]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Return statements that load the unit's terms of the turn from `first` on."""
        o = self._operand
        body: list[t.Stmt] = []
        if o.linear:
            step = o.linear.step(o.builder, o.over[0], first, o.lanes)
            addresses = [start + step for start in self._starts]
            if o.clamps:
                pairs = zip(addresses, self._ends, strict=True)
                addresses = [t.call("min", address, end) for address, end in pairs]
            for register, address in zip(self.registers, addresses, strict=True):
                body.append(t.Assign(register, o.vector_from(o.linear, address)))
            return body
        term: t.Expr = first + self._over
        if o.clamps:
            term = t.call("min", term, o.last_term)
        for register, place in zip(self.registers, self._places, strict=True):
            body.append(t.Assign(register, o.vector(place, term, body)))
        return body

    def fetch_window(self, *, divided: bool) -> list[t.Stmt]:
        """Return statements that load the term whose indices are counted (`Digits`)."""
        value = self._operand.window(self._neighbours, self._digits, divided=divided)
        return [t.Assign(self.registers[0], value)]

    def clear(self, count: t.Expr) -> Iterator[t.Stmt]:
        """Yield statements that set registers to 0 from term number `count` on."""
        o = self._operand
        zero = identity(o.builder, "sum", o.factor.type, LANES)
        kept = self._over < count
        for register in self.registers:
            value = t.call("select", zero, register, kept)
            yield t.Assign(register, value)

    def stage(self, tile: t.Expr) -> list[t.Stmt]:
        """Return stores of the registers to the tile, transposed if memory runs along terms."""
        o = self._operand
        if not o.along_terms:
            return [t.Assign(tile[self._over][self._at], self.registers[0])]
        block, at = self._at // o.across, self._at % o.across
        at = o.turned(at, self._over)
        if not o.turns_over:
            return [t.Assign(tile[self._over][block][at], self.registers[0])]
        # Vector n of the transpose has component n of every line.
        turned = (
            t.Call(o.vector_type, tuple(t.Member(r, component) for r in self.registers))
            for component in COMPONENTS
        )
        return [
            t.Assign(tile[self._over + term][block][at], vector)
            for term, vector in enumerate(turned)
        ]
