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

    def place(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Find this invocation's units in the tile, and hoist their addresses."""
        self._at = dict(batch)
        turns = -(-self.count // self.tiling.invocations)
        self._units = [_Unit(self, number) for number in range(turns)]
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

    def element(self, outer: t.Expr, over: t.Expr) -> t.Expr:
        """Return one element, or 0 where it lies beyond the edge."""
        return t.call(self._declare_element(), *self.positions(outer, over))

    def _declare_element(self) -> str:
        """Declare the function that selects the edge away, whatever lies behind it."""
        s = self.builder
        tensor = self.load.tensor
        name = s.name(f"{tensor.name}_or_zero_{self.name}", "function")
        key = f"function {name}"
        if s.has(key):
            return name
        indices = [x.index for x in self.load.subscripts if isinstance(x, IndexValue)]
        named = [t.Ident(s.name(index.name)) for index in indices]
        at = dict(zip(indices, named, strict=True))
        bounds = [at[x] < s.extent(x.extent) for x in (self.outer, self.over)]
        inside, address = (t.Ident(s.fresh(x)) for x in ("inside", "address"))
        position = row_major(s, tensor.extents, list(named))
        buffer = s.buffer(tensor)
        body = (
            t.Let(inside.name, t.all_of(*bounds)),
            t.Let(address.name, t.call("select", t.ZERO, position, inside)),
            t.Return(t.call("select", t.Literal("0.0"), buffer.expr[address], inside)),
        )
        parameters = tuple((ident.name, "u32") for ident in named)
        comment = f"An element of {tensor.name}, or 0 beyond the edge."
        s.declare(key, t.Function(name, parameters, "f32", body, comment))
        return name


@final
class _Unit:
    """What one invocation brings in one turn: a vector, or a block of 4 x 4."""

    def __init__(self, operand: Operand, number: int) -> None:
        self._operand = operand
        self._number = number
        s = operand.builder
        name = f"{operand.name}_load_{number}"
        vectors = range(VECTOR if operand.transposes else 1)
        self.registers = [t.Ident(s.fresh(f"{name}_{v}")) for v in vectors]
        self._unit, self._outer, self._over = (
            t.Ident(s.fresh(f"{operand.name}_{what}_{number}"))
            for what in ("unit", "outer", "over")
        )
        self._addresses = [
            t.Ident(s.fresh(f"{operand.name}_at_{number}_{v}")) for v in vectors
        ]

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
        return [
            t.Assign(register, self._edge_vector(row, first))
            for row, register in enumerate(self.registers)
        ]

    def _edge_vector(self, row: int, first: t.Expr) -> t.Expr:
        o = self._operand
        outer, over = o.origin + self._outer, first + self._over
        if o.transposes:
            places = [(outer + row, over + n) for n in range(VECTOR)]
        else:
            places = [(outer + n, over) for n in range(VECTOR)]
        return t.Call("vec4f", tuple(o.element(*place) for place in places))

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
