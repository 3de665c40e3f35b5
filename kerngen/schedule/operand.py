"""One operand of a tiled matrix product: from storage, by registers, to its tile.

A tile holds, for every term, the vectors of four neighbours along the operand's own
index, in blocks: an invocation reads the same vector of each block.  So all that its
reads differ by are constants, and one bounds check is enough for them.  Where memory runs
along the reduction instead, an invocation loads four lines of four terms and turns them
over in registers.  Either way it stores whole vectors, and none writes part of another's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Final, TypeVar, final

from kerngen.ir.nodes import Expr, Index
from kerngen.ir.reads import free_indices
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.contraction import tile_axis
from kerngen.schedule.identities import identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import places, unravel
from kerngen.schedule.tiling import VECTOR, Tiling
from kerngen.schedule.values import COMPONENTS, LANES
from kerngen.shader import tree as t

_VECTOR_BYTES: Final = 16

T = TypeVar("T")


@final
@dataclass
class Operand:
    """Writes the statements that bring one operand into workgroup memory.

    `factor` is its value, `outer` its own index, `over` the reduction's, which one
    counter goes over; a tile has `blocks` of `across` vectors along `outer`.  `origin` is
    where the workgroup's tile starts there.  What lies beyond the end of `outer` is read from its
    last place, as nobody uses it; terms beyond the last one are 0.  Where all is
    `whole`, vectors in memory are, and so are the turns of the loop.
    """

    builder: ShaderBuilder
    factor: Expr
    outer: Index
    over: tuple[Index, ...]
    name: str
    blocks: int
    across: int
    tiling: Tiling
    whole: bool
    origin: t.Expr = t.ZERO
    _at: dict[Index, t.Expr] = field(default_factory=dict)
    _units: list[_Unit] = field(default_factory=list)
    _vector: str = ""

    def __post_init__(self) -> None:
        """Declare the tile."""
        axis = tile_axis(self.factor, self.over[-1], self.outer)
        self.turns_over = axis == self.over[-1]
        self.lines = VECTOR if self.turns_over else 1
        self.line = self.blocks * self.across
        self.count = self.line * self.tiling.k // self.lines
        sizes = [self.across + self.tiling.pad, self.blocks, self.tiling.k]
        if self.tiling.buffers > 1:
            sizes.append(self.tiling.buffers)
        type_ = self.vector_type
        for size in sizes:
            type_ = f"array<{type_}, {size}>"
        size = _VECTOR_BYTES * prod(sizes)
        self._tile = self.builder.workgroup_array(f"{self.name}_tile", type_, size)

    def tile(self, buffer: t.Expr | None) -> t.Expr:
        """Return the tile; of two, the one of that number."""
        return self._tile if buffer is None else self._tile[buffer]

    @property
    def counter(self) -> str:
        """What counts the terms: the reduction's index, where there is one."""
        return self.over[0].name if len(self.over) == 1 else "term"

    @property
    def vector_type(self) -> str:
        """What four neighbours are in WGSL."""
        return wgsl_type(self.factor.type, LANES)

    def place(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Find this invocation's vectors in the tile."""
        self._at = dict(batch)
        turns = -(-self.count // self.tiling.invocations)
        self._units = [_Unit(self, number, turns) for number in range(turns)]
        return [stmt for unit in self._units for stmt in unit.place()]

    def declare(self) -> list[t.Stmt]:
        """Declare the registers between storage and tile."""
        return [
            t.Var(register.name, None, self.vector_type)
            for unit in self._units
            for register in unit.registers
        ]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Load the terms from `first` on into registers."""
        return [
            stmt for unit in self._units for stmt in unit.guarded(unit.fetch(first))
        ]

    def stage(self, buffer: t.Expr | None) -> list[t.Stmt]:
        """Store the registers to the tile."""
        tile = self.tile(buffer)
        return [stmt for unit in self._units for stmt in unit.guarded(unit.stage(tile))]

    def inside(self, outer: t.Expr) -> t.Expr:
        """Return the place of a vector, or of a line, that is not beyond the end."""
        if not self.whole and not self.turns_over:
            return outer
        return self._before_end(outer, 1 if self.turns_over else VECTOR)

    def vector(self, outer: t.Expr, over: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return four neighbours in memory."""
        if not self.whole:
            if not self._vector:
                self._vector = self._declare_vector(self._declare_element())
            return t.call(self._vector, *self._place(self._at, outer, over))
        axis = self.over[-1] if self.turns_over else self.outer
        terms = places(self.builder, self.over, over)
        at = {**self._at, self.outer: outer, **terms}
        lowerer = Lowerer(self.builder, at, block, vector=axis, label=self.name)
        return lowerer.widen(lowerer.lower(self.factor), self.factor.type)

    # The edge

    def _place(self, batch: Mapping[Index, T], outer: T, term: T) -> list[T]:
        """Return what an element depends on; the place along memory is the last."""
        used = free_indices(self.factor)
        ends = (outer, term) if self.turns_over else (term, outer)
        return [*(at for index, at in batch.items() if index in used), *ends]

    def _names(self) -> tuple[dict[Index, str], str]:
        """Name an element's indices, and the number of its term."""
        s, single = self.builder, len(self.over) == 1
        term = s.name(self.counter, "value" if single else "counter")
        return {i: s.name(i.name) for i in (*self._at, self.outer)}, term

    def _signature(self) -> tuple[tuple[str, str], ...]:
        names, term = self._names()
        batch = {index: names[index] for index in self._at}
        place = self._place(batch, names[self.outer], term)
        return tuple((name, "u32") for name in place)

    def _declare_element(self) -> str:
        """Declare the function that reads no element beyond the edge."""
        s = self.builder
        names, number = self._names()
        at: dict[Index, t.Expr] = {i: t.Ident(name) for i, name in names.items()}
        term, terms = t.Ident(number), s.size(self.over)
        name, nearest = s.fresh(f"{self.name}_element"), t.Ident(s.fresh("nearest"))
        last = t.Binary("-", terms, t.ONE)
        body: list[t.Stmt] = [t.Let(nearest.name, t.call("min", term, last))]
        if not self.turns_over:
            at[self.outer] = self._before_end(at[self.outer], 1)
        at |= unravel(s, body, self.over, nearest)
        value = Lowerer(s, at, body, label=self.name).lower(self.factor)
        zero = identity("sum", self.factor.type)
        body.append(t.Return(t.call("select", zero, value.expr, term < terms)))
        about = f"An element of the operand {self.name}; terms beyond the last are 0."
        type_ = wgsl_type(self.factor.type)
        function = t.Function(name, self._signature(), type_, tuple(body), about)
        s.declare(f"function {name}", function)
        return name

    def _inside(self) -> Iterator[t.Stmt]:
        """Yield the way to read four neighbours at once, if they do not wrap."""
        s, innermost = self.builder, self.over[-1]
        if self.turns_over and self.over != (innermost,):
            return
        names, number = self._names()
        at: dict[Index, t.Expr] = {i: t.Ident(name) for i, name in names.items()}
        term, terms = t.Ident(number), s.size(self.over)
        if self.turns_over:
            axis, inside = innermost, term + (VECTOR - 1) < terms
        else:
            axis, end = self.outer, at[self.outer] + (VECTOR - 1)
            inside = t.all_of(end < s.extent(self.outer.extent), term < terms)
        body: list[t.Stmt] = []
        at |= unravel(s, body, self.over, term)
        lowerer = Lowerer(s, at, body, vector=axis, label=self.name)
        value = lowerer.widen(lowerer.lower(self.factor), self.factor.type)
        yield t.If(inside, (*body, t.Return(value)))

    def _before_end(self, outer: t.Expr, width: int) -> t.Expr:
        """Return a place, or the last one behind which `width` elements are left."""
        last = t.Binary("-", self.builder.extent(self.outer.extent), t.u32(width))
        return t.call("min", outer, last)

    def _declare_vector(self, element: str) -> str:
        """Declare the function that reads four neighbours: one by one at the end."""
        s = self.builder
        name = s.fresh(f"{self.name}_vector")
        *before, last = (t.Ident(name) for name, _ in self._signature())
        elements = (t.call(element, *before, last + n) for n in range(VECTOR))
        type_ = self.vector_type
        body = (*self._inside(), t.Return(t.Call(type_, tuple(elements))))
        about = f"Four neighbouring elements of the operand {self.name}."
        function = t.Function(name, self._signature(), type_, body, about)
        s.declare(f"function {name}", function)
        return name


@final
class _Unit:
    """What an invocation brings in one of its turns: a vector, or four lines of one."""

    def __init__(self, operand: Operand, number: int, turns: int) -> None:
        self._operand = operand
        self._number = number
        self._turn = f"_{number}" if turns > 1 else ""
        self.registers = self._name_lines("load")
        self._places = self._name_lines(operand.outer.name)
        self._unit, self._at = self._name("unit"), self._name("at")
        self._over = self._name(operand.counter)

    def _name(self, what: str, line: str = "") -> t.Ident:
        o = self._operand
        return t.Ident(o.builder.fresh(f"{o.name}_{what}{self._turn}{line}"))

    def _name_lines(self, what: str) -> list[t.Ident]:
        if self._operand.lines == 1:
            return [self._name(what)]
        return [self._name(what, f"_line_{n}") for n in range(self._operand.lines)]

    def place(self) -> Iterator[t.Stmt]:
        """Name the place in the tile, and those in memory."""
        o = self._operand
        unit = o.builder.lane + self._number * o.tiling.invocations
        if o.turns_over:
            blocks = o.tiling.k // VECTOR
            at, over = self._unit // blocks, self._unit % blocks * VECTOR
        else:
            at, over = self._unit % o.line, self._unit // o.line
        yield t.Let(self._unit.name, unit)
        yield t.Let(self._at.name, at)
        yield t.Let(self._over.name, over)
        for line, place in enumerate(self._places):
            yield t.Let(place.name, o.inside(o.origin + (self._at * VECTOR + line)))

    def guarded(self, body: list[t.Stmt]) -> list[t.Stmt]:
        """Leave out the invocations that have nothing to bring in this turn."""
        o = self._operand
        if (self._number + 1) * o.tiling.invocations <= o.count:
            return body
        return [t.If(self._unit < o.count, tuple(body))]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Load the terms from `first` on."""
        o = self._operand
        body: list[t.Stmt] = []
        for register, place in zip(self.registers, self._places, strict=True):
            value = o.vector(place, first + self._over, body)
            body.append(t.Assign(register, value))
        return body

    def stage(self, tile: t.Expr) -> list[t.Stmt]:
        """Store to the tile what was loaded, turned over if it lies so."""
        o = self._operand
        block, at = self._at // o.across, self._at % o.across
        if not o.turns_over:
            return [t.Assign(tile[self._over][block][at], self.registers[0])]
        turned = (
            t.Call(o.vector_type, tuple(t.Member(r, component) for r in self.registers))
            for component in COMPONENTS
        )
        return [
            t.Assign(tile[self._over + term][block][at], vector)
            for term, vector in enumerate(turned)
        ]
