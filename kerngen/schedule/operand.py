"""One operand of a tiled matrix product: from storage, by registers, to its tile.

The tile holds the reduction outermost: `tile[p][o / 4]` is a vector of four neighbours
along the operand's own index `o`.  An operand whose memory runs along `o` is copied
vector by vector.  One whose memory runs along the reduction is brought in blocks of
4 x 4, which are transposed in registers; no invocation writes part of another's vector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Index, IndexValue, Load
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.lowering import row_major
from kerngen.schedule.tiling import VECTOR, Tiling
from kerngen.shader import tree as t


@final
@dataclass
class Operand:
    """Writes the statements that bring one operand into workgroup memory.

    `outer` is the operand's own index, `over` the reduction's; a tile is `size` long
    along `outer`.  `origin` is where the workgroup's tile starts along `outer`.
    """

    builder: ShaderBuilder
    load: Load
    outer: Index
    over: Index
    name: str
    size: int
    tiling: Tiling
    whole: bool
    origin: t.Expr = t.ZERO
    _at: dict[Index, t.Expr] = field(default_factory=dict)
    _units: list[_Unit] = field(default_factory=list)
    _vector: str = ""

    def __post_init__(self) -> None:
        row = self.size // VECTOR + self.tiling.pad
        self.tile = self.builder.workgroup_array(
            f"{self.name}_tile",
            f"array<array<vec4f, {row}>, {self.tiling.k}>",
            16 * row * self.tiling.k,
        )
        micro = {"a": self.tiling.micro_m, "b": self.tiling.micro_n}[self.name]
        self.fragments = [
            t.Ident(self.builder.fresh(f"{self.name}_{number}"))
            for number in range(micro // VECTOR)
        ]
        self.transposes = self.load.subscripts[-1] == IndexValue(self.over)

    @property
    def count(self) -> int:
        """How many units of work a tile is: vectors, or blocks of 4 x 4."""
        vectors = self.size * self.tiling.k // VECTOR
        return vectors // VECTOR if self.transposes else vectors

    @property
    def turns(self) -> int:
        """How many units each invocation brings."""
        return -(-self.count // self.tiling.invocations)

    def place(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Find this invocation's units in the tile, and hoist their addresses."""
        self._at = dict(batch)
        self._units = [_Unit(self, number) for number in range(self.turns)]
        return [stmt for unit in self._units for stmt in unit.place()]

    def declare(self) -> list[t.Stmt]:
        """Declare the registers between storage and tile."""
        return [
            t.Var(register.name, None, "vec4f")
            for unit in self._units
            for register in unit.registers
        ]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Load the units for the terms from `first` on into registers."""
        return [
            stmt for unit in self._units for stmt in unit.guarded(unit.fetch(first))
        ]

    def stage(self) -> list[t.Stmt]:
        """Store the registers to the tile."""
        return [stmt for unit in self._units for stmt in unit.guarded(unit.stage())]

    # Addresses

    def address(self, outer: t.Expr, over: t.Expr) -> t.Expr:
        """Return the row-major address of an element."""
        at = self.positions(outer, over)
        return row_major(self.builder, self.load.tensor.extents, at)

    def positions(self, outer: t.Expr, over: t.Expr) -> list[t.Expr]:
        """Return the operand's subscripts in order."""
        at = {**self._at, self.outer: outer, self.over: over}
        return [at[s.index] for s in self.load.subscripts if isinstance(s, IndexValue)]

    def stride(self) -> t.Expr:
        """Return the distance between neighbours along the reduction."""
        axis = self.load.subscripts.index(IndexValue(self.over))
        stride = t.ONE
        for extent in self.load.tensor.extents[axis + 1 :]:
            stride = stride * self.builder.extent(extent)
        return stride

    # The edge

    def vector(self, outer: t.Expr, over: t.Expr) -> t.Expr:
        """Return four neighbours in memory, each 0 where it lies beyond the edge."""
        if not self._vector:
            self._vector = self._declare_vector(self._declare_element())
        return t.call(self._vector, *self.positions(outer, over))

    def _parameters(self) -> dict[Index, t.Expr]:
        indices = [x.index for x in self.load.subscripts if isinstance(x, IndexValue)]
        return {index: t.Ident(self.builder.name(index.name)) for index in indices}

    def _signature(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (self.builder.name(index.name), "u32") for index in self._parameters()
        )

    def _declare_element(self) -> str:
        """Declare the function that selects the edge away, whatever lies behind it."""
        s, tensor, at = self.builder, self.load.tensor, self._parameters()
        name = s.fresh(f"{tensor.name}_or_zero")
        bounds = [at[x] < s.extent(x.extent) for x in (self.outer, self.over)]
        inside, address = (t.Ident(s.name(x, "local")) for x in ("inside", "address"))
        position = row_major(s, tensor.extents, list(at.values()))
        value = s.buffer(tensor).expr[address]
        body = (
            t.Let(inside.name, t.all_of(*bounds)),
            t.Let(address.name, t.call("select", t.ZERO, position, inside)),
            t.Return(t.call("select", t.Literal("0.0"), value, inside)),
        )
        about = f"An element of {tensor.name}, or 0 beyond the edge."
        function = t.Function(name, self._signature(), "f32", body, about)
        s.declare(f"function {name}", function)
        return name

    def _declare_vector(self, element: str) -> str:
        """Declare the function that gathers four neighbours along the last axis."""
        s, tensor = self.builder, self.load.tensor
        name = s.fresh(f"{tensor.name}_vector")
        *before, last = self._parameters().values()
        elements = (t.call(element, *before, last + n) for n in range(VECTOR))
        body = (t.Return(t.Call("vec4f", tuple(elements))),)
        about = f"Four neighbouring elements of {tensor.name}, 0 beyond the edge."
        function = t.Function(name, self._signature(), "vec4f", body, about)
        s.declare(f"function {name}", function)
        return name


@final
class _Unit:
    """What one invocation brings in one turn: a vector, or a block of 4 x 4."""

    def __init__(self, operand: Operand, number: int) -> None:
        self._operand = operand
        self._number = number
        s, o = operand.builder, operand
        turn = f"_{number}" if o.turns > 1 else ""
        rows = [f"_{row}" for row in range(VECTOR)] if o.transposes else [""]

        def name(what: str) -> t.Ident:
            return t.Ident(s.fresh(f"{o.name}_{what}{turn}"))

        self.registers = [name(f"load{row}") for row in rows]
        self._addresses = [name(f"at{row}") for row in rows] if o.whole else []
        self._unit = name("unit")
        self._outer, self._over = name(o.outer.name), name(o.over.name)

    def place(self) -> list[t.Stmt]:
        o, tiling = self._operand, self._operand.tiling
        unit = o.builder.lane + self._number * tiling.invocations
        if o.transposes:
            across = tiling.k // VECTOR
            outer, over = self._unit // across * VECTOR, self._unit % across * VECTOR
        else:
            across = o.size // VECTOR
            outer, over = self._unit % across * VECTOR, self._unit // across
        placed: list[t.Stmt] = [
            t.Let(self._unit.name, unit),
            t.Let(self._outer.name, outer),
            t.Let(self._over.name, over),
        ]
        if not o.whole:
            return placed
        for row, address in enumerate(self._addresses):
            value = o.address(o.origin + self._outer + row, self._over)
            placed.append(t.Let(address.name, value))
        return placed

    def guarded(self, body: list[t.Stmt]) -> list[t.Stmt]:
        """Leave out the invocations that have no unit in this turn."""
        o = self._operand
        if (self._number + 1) * o.tiling.invocations <= o.count:
            return body
        return [t.If(self._unit < o.count, tuple(body))]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        o = self._operand
        if o.whole:
            buffer = o.builder.buffer(o.load.tensor)
            ahead = first * o.stride()
            return [
                t.Assign(register, buffer.expr[(address + ahead) // VECTOR])
                for register, address in zip(
                    self.registers, self._addresses, strict=True
                )
            ]
        outer, over = o.origin + self._outer, first + self._over
        return [
            t.Assign(register, o.vector(outer + row, over))
            for row, register in enumerate(self.registers)
        ]

    def stage(self) -> list[t.Stmt]:
        o = self._operand
        vector = self._outer // VECTOR
        if not o.transposes:
            return [t.Assign(o.tile[self._over][vector], self.registers[0])]
        return [
            t.Assign(
                o.tile[self._over + number][vector],
                t.Call("vec4f", tuple(t.Member(r, part) for r in self.registers)),
            )
            for number, part in enumerate("xyzw")
        ]
