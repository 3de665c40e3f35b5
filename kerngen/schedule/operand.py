"""One operand of a tiled matrix product: from storage, by registers, to its tile.

A tile holds vectors as they lie in memory.  Where memory runs along the operand's own
index `o`, that is `tile[p][o / 4]`; where it runs along the reduction, `tile[o][p / 4]`.
Either way a vector is copied whole, and no invocation writes part of another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar, final

from kerngen.ir.nodes import Expr, Index
from kerngen.ir.reads import free_indices
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.contraction import tile_axis
from kerngen.schedule.identities import identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import places, unravel
from kerngen.schedule.tiling import VECTOR, Tiling
from kerngen.schedule.values import LANES
from kerngen.shader import tree as t

_VECTOR_BYTES: Final = 16

T = TypeVar("T")


@final
@dataclass
class Operand:
    """Writes the statements that bring one operand into workgroup memory.

    `factor` is its value, `outer` its own index, `over` the reduction's, which one
    counter goes over; a tile is `size` long along `outer`.  `origin` is where the
    workgroup's tile starts there.
    """

    builder: ShaderBuilder
    factor: Expr
    outer: Index
    over: tuple[Index, ...]
    name: str
    size: int
    tiling: Tiling
    whole: bool
    origin: t.Expr = t.ZERO
    _at: dict[Index, t.Expr] = field(default_factory=dict)
    _units: list[_Unit] = field(default_factory=list)
    _vector: str = ""

    def __post_init__(self) -> None:
        """Declare the tile."""
        axis = tile_axis(self.factor, self.over[-1], self.outer)
        self.runs_along_reduction = axis == self.over[-1]
        along, lines = (self.size, self.tiling.k)
        if self.runs_along_reduction:
            along, lines = lines, along
        self.line = along // VECTOR
        self.count = self.line * lines
        padded = self.line + self.tiling.pad
        type_ = f"array<array<{self.vector_type}, {padded}>, {lines}>"
        self.tile = self.builder.workgroup_array(
            f"{self.name}_tile", type_, _VECTOR_BYTES * padded * lines
        )

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
            t.Var(unit.register.name, None, self.vector_type) for unit in self._units
        ]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Load the terms from `first` on into registers."""
        return [
            stmt for unit in self._units for stmt in unit.guarded(unit.fetch(first))
        ]

    def stage(self) -> list[t.Stmt]:
        """Store the registers to the tile."""
        return [stmt for unit in self._units for stmt in unit.guarded(unit.stage())]

    def vector(self, outer: t.Expr, over: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return four neighbours in memory; beyond the edge they are 0."""
        if not self.whole:
            if not self._vector:
                self._vector = self._declare_vector(self._declare_element())
            return t.call(self._vector, *self._place(self._at, outer, over))
        axis = self.over[-1] if self.runs_along_reduction else self.outer
        terms = places(self.builder, self.over, over)
        at = {**self._at, self.outer: outer, **terms}
        lowerer = Lowerer(self.builder, at, block, vector=axis, label=self.name)
        return lowerer.widen(lowerer.lower(self.factor), self.factor.type)

    # The edge

    def _place(self, batch: Mapping[Index, T], outer: T, term: T) -> list[T]:
        """Return what an element depends on; the place along memory is the last."""
        used = free_indices(self.factor)
        ends = (outer, term) if self.runs_along_reduction else (term, outer)
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
        term = t.Ident(number)
        name = s.fresh(f"{self.name}_element")
        beyond = (
            at[self.outer] >= s.extent(self.outer.extent),
            term >= s.size(self.over),
        )
        zero = identity("sum", self.factor.type)
        body: list[t.Stmt] = [t.If(t.any_of(*beyond), (t.Return(zero),))]
        at |= unravel(s, body, self.over, term)
        value = Lowerer(s, at, body, label=self.name).lower(self.factor)
        body.append(t.Return(value.expr))
        about = f"An element of the operand {self.name}, or 0 beyond the edge."
        type_ = wgsl_type(self.factor.type)
        function = t.Function(name, self._signature(), type_, tuple(body), about)
        s.declare(f"function {name}", function)
        return name

    def _declare_vector(self, element: str) -> str:
        """Declare the function that gathers four neighbours."""
        s = self.builder
        name = s.fresh(f"{self.name}_vector")
        *before, last = (t.Ident(name) for name, _ in self._signature())
        elements = (t.call(element, *before, last + n) for n in range(VECTOR))
        type_ = self.vector_type
        body = (t.Return(t.Call(type_, tuple(elements))),)
        about = f"Four neighbouring elements of the operand {self.name}."
        function = t.Function(name, self._signature(), type_, body, about)
        s.declare(f"function {name}", function)
        return name


@final
class _Unit:
    """The vector that an invocation brings in one of its turns."""

    def __init__(self, operand: Operand, number: int, turns: int) -> None:
        self._operand = operand
        self._number = number
        turn = f"_{number}" if turns > 1 else ""

        def name(what: str) -> t.Ident:
            return t.Ident(operand.builder.fresh(f"{operand.name}_{what}{turn}"))

        self.register = name("load")
        self._unit = name("unit")
        self._outer, self._over = name(operand.outer.name), name(operand.counter)

    def place(self) -> list[t.Stmt]:
        """Name the vector's place in the tile."""
        o = self._operand
        unit = o.builder.lane + self._number * o.tiling.invocations
        along, line = self._unit % o.line * VECTOR, self._unit // o.line
        outer, over = (line, along) if o.runs_along_reduction else (along, line)
        return [
            t.Let(self._unit.name, unit),
            t.Let(self._outer.name, outer),
            t.Let(self._over.name, over),
        ]

    def guarded(self, body: list[t.Stmt]) -> list[t.Stmt]:
        """Leave out the invocations that have no vector in this turn."""
        o = self._operand
        if (self._number + 1) * o.tiling.invocations <= o.count:
            return body
        return [t.If(self._unit < o.count, tuple(body))]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Load the vector for the terms from `first` on."""
        o = self._operand
        body: list[t.Stmt] = []
        value = o.vector(o.origin + self._outer, first + self._over, body)
        return [*body, t.Assign(self.register, value)]

    def stage(self) -> list[t.Stmt]:
        """Store the vector to the tile."""
        line, along = self._over, self._outer
        if self._operand.runs_along_reduction:
            line, along = along, line
        return [t.Assign(self._operand.tile[line][along // VECTOR], self.register)]
