"""The tiles of a folded recurrence: what the turns of a block read, in workgroup memory.

    x[n, t, i]    x_tile: a row for each turn, a column for each element of the workgroup
    u[n, t, k]    u_tile: a row for each turn, a column for each lane of an element
    a[i, k]       a_kept: a register, read once, as it is the same in all turns

The lanes of a workgroup read a block's numbers together, each number once, and a block
ahead: while they take the turns of a block, the numbers of the next one are on their way
to registers, here `x_ahead`.

    x_ahead = x[...];                                // block 0
    for (var block = 0u; ...) {
        x_tile[lane] = x_ahead;
        workgroupBarrier();
        x_ahead = x[...];                            // the next block
        ...                                          // the turns of this block
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.analysis.reads import free_indices, is_within, loads
from kerngen.ir.nodes import Index, Load
from kerngen.ir.types import Scalar
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.cooperation import value_bytes
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.recurrence.folded import Folded
from kerngen.shader import tree as t

INVOCATIONS: Final = 64
"""The lanes of a workgroup."""

MOST_TURNS: Final = 16
"""The turns of a block, if workgroup memory has room for them."""


@final
@dataclass(frozen=True)
class TurnReads:
    """The reads of a turn, by the indices on which they depend.

    - `fixed`: the same in all turns, as `a[i, k]`
    - `of_element`: the same for all lanes of an element, as `x[n, t, i]`
    - `of_lane`: the same for all elements of a workgroup, as `u[n, t, k]`

    Reads that differ in turns, lanes and elements have no tile: each turn makes its own.
    """

    fixed: tuple[Load, ...]
    of_element: tuple[Load, ...]
    of_lane: tuple[Load, ...]

    @classmethod
    def of(cls, found: Folded, differ: tuple[Index, ...]) -> TurnReads:
        """Return a turn's reads by kind; in a workgroup, elements differ in these indices."""
        fixed, of_element, of_lane = list[Load](), list[Load](), list[Load]()
        for load in _plain_reads(found):
            free = free_indices(load)
            if found.along not in free:
                fixed.append(load)
            elif found.own not in free:
                of_element.append(load)
            elif not free & {*differ}:
                of_lane.append(load)
        return cls(tuple(fixed), tuple(of_element), tuple(of_lane))


def _plain_reads(found: Folded) -> Iterator[Load]:
    """Yield the distinct reads of scalars that stay inside their axes without a clamp."""
    written = {*found.sums.tensors_written}
    reads = (load for value in found.values for load in loads(value))
    for load in dict.fromkeys(reads):
        is_scalar = isinstance(load.tensor.element, Scalar)
        if is_scalar and is_within(load) and load.tensor not in written:
            yield load


@final
@dataclass(frozen=True)
class LaneGroup:
    """How the lanes of a workgroup share elements.

    `lanes` lanes share an element, and have `each` states: 1 or 4.  Neighbouring lanes have
    neighbouring elements.  A block of the loop has `turns` turns.
    """

    lanes: int
    each: int
    turns: int

    @classmethod
    def of(
        cls, found: Folded, reads: TurnReads, lanes: int, each: int, most: int
    ) -> LaneGroup:
        """Return the group with the longest blocks whose tiles and terms fit `most` bytes."""
        elements = INVOCATIONS // lanes
        # The bytes of a turn: a term of each lane, and a row of each tile.
        size = value_bytes(found.reduce.type) * INVOCATIONS
        size += sum(value_bytes(x.type) for x in reads.of_element) * elements
        size += sum(value_bytes(x.type) for x in reads.of_lane) * lanes * each
        turns = MOST_TURNS
        while turns * size > most:
            turns //= 2
        return cls(lanes, each, turns)

    @property
    def elements(self) -> int:
        """The number of elements that a workgroup computes."""
        return INVOCATIONS // self.lanes


@final
@dataclass(frozen=True)
class Lane:
    """The variables of a shader for the element and the states that a lane has.

    - `column`: the number of its element in the workgroup
    - `place`: its number among the lanes of the element
    - `first`, `own`: the first state of the element's lanes, and of this lane
    - `has_element`, `has_state`: the conditions that the element and the lane's state exist
    """

    column: t.Expr
    place: t.Expr
    first: t.Expr
    own: t.Expr
    has_element: t.Expr
    has_state: t.Expr


@final
@dataclass(frozen=True)
class _Tile:
    """A tile in workgroup memory for each read: a row of `columns` elements for each turn.

    `registers` are those of a lane for the next block: a lane reads every 64th element of
    each tile, and has a register for each of them.
    """

    columns: int
    memory: dict[Load, t.Expr]
    registers: tuple[dict[Load, t.Ident], ...]


@final
class RecurrenceTiles:
    """Emits the reads of a folded recurrence: into tiles, or into registers if fixed."""

    def __init__(
        self, to: Lowerer, found: Folded, reads: TurnReads, group: LaneGroup, lane: Lane
    ) -> None:
        """Declare tiles and registers; `to` has the indices of the lane's element and state."""
        self._to, self._found, self._group, self._lane = to, found, group, lane
        self._fixed = {load: self._register(load, "kept") for load in reads.fixed}
        self._of_element = self._tile(reads.of_element, group.elements)
        self._of_lane = self._tile(reads.of_lane, group.lanes)

    def _width(self, load: Load) -> int:
        """Return how many numbers a read is for a lane: one for each state, if they differ."""
        return self._group.each if self._found.own in free_indices(load) else 1

    def _register(self, load: Load, ending: str) -> t.Ident:
        name = self._to.shader.fresh(f"{load.tensor.name}_{ending}")
        type_ = wgsl_type(load.type, self._width(load))
        self._to.block.append(t.Var(name, type=type_))
        return t.Ident(name)

    def _tile(self, reads: tuple[Load, ...], columns: int) -> _Tile:
        count = self._group.turns * columns
        memory = {load: self._array(load, count) for load in reads}
        registers = tuple(
            {load: self._register(load, "ahead") for load in reads}
            for _ in range(0, count, INVOCATIONS)
        )
        return _Tile(columns, memory, registers if reads else ())

    def _array(self, load: Load, count: int) -> t.Expr:
        width, name = self._width(load), f"{load.tensor.name}_tile"
        type_ = f"array<{wgsl_type(load.type, width)}, {count}>"
        size = count * width * value_bytes(load.type)
        return self._to.shader.workgroup_array(name, type_, size)

    def keep(self) -> None:
        """Emit the reads that are the same in all turns, into registers, before the loop."""
        if self._fixed:
            read = _reads(self._to.nested({}), self._fixed)
            self._to.block.append(t.If(self._lane.has_state, read))

    def read(self, block: t.Expr) -> Iterator[t.Stmt]:
        """Yield statements that read ahead, into registers, for the turns from `block` on.

        A read is skipped if its turn, element or state does not exist.
        """
        lane, tile, own = self._lane, self._of_lane, self._found.own
        yield from self._read(self._of_element, block, {}, lane.has_element)
        first = lane.first + self._to.shader.lane % tile.columns * self._group.each
        has_state = first < self._to.shader.extent(own.extent)
        yield from self._read(tile, block, {own: first}, has_state)

    def _read(
        self, tile: _Tile, block: t.Expr, at: dict[Index, t.Expr], exists: t.Expr
    ) -> Iterator[t.Stmt]:
        found, shader = self._found, self._to.shader
        length = shader.extent(found.along.extent)
        for place, registers in self._shares(tile):
            turn = t.Ident(shader.fresh("turn_ahead"))
            yield t.Let(turn.name, block + place // tile.columns)
            inner = self._to.nested({**at, found.along: found.element(turn, length)})
            inside = (turn < length, *self._inside(tile, place))
            yield t.If(t.all_of(exists, *inside), _reads(inner, registers))

    def _shares(self, tile: _Tile) -> Iterator[tuple[t.Expr, dict[Load, t.Ident]]]:
        """Yield the places in a tile that the lane fills, and the registers of each."""
        for number, registers in enumerate(tile.registers):
            yield self._to.shader.lane + number * INVOCATIONS, registers

    def _inside(self, tile: _Tile, place: t.Expr) -> tuple[t.Expr, ...]:
        """Return the condition that a place is inside of the tile, if some are not."""
        count = self._group.turns * tile.columns
        return (place < count,) if count % INVOCATIONS else ()

    def store(self) -> Iterator[t.Stmt]:
        """Yield statements that store what the registers have read ahead into the tiles."""
        for tile in (self._of_element, self._of_lane):
            for place, registers in self._shares(tile):
                stores = [
                    t.Assign(tile.memory[load][place], register)
                    for load, register in registers.items()
                ]
                inside = self._inside(tile, place)
                yield from [t.If(t.all_of(*inside), (*stores,))] if inside else stores

    def values(self, turn: t.Expr) -> dict[Load, Value]:
        """Return the values of the reads in turn `turn` of a block: from tiles or registers."""
        lane, found = self._lane, dict[Load, t.Expr](self._fixed)
        places = ((self._of_element, lane.column), (self._of_lane, lane.place))
        for tile, place in places:
            at = turn * tile.columns + place
            found |= {load: memory[at] for load, memory in tile.memory.items()}
        return {x: Value(value, self._width(x) > 1) for x, value in found.items()}


def _reads(to: Lowerer, registers: Mapping[Load, t.Ident]) -> tuple[t.Stmt, ...]:
    """Return the statements that read into registers."""
    for load, register in registers.items():
        to.block.append(t.Assign(register, to.lower(load).expr))
    return tuple(to.block)
