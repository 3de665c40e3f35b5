"""One operand of a tiled matrix product: from storage, by registers, to its tile.

A tile has, for every term, the vectors of four neighbours along the operand's own index, in
blocks: an invocation reads the same vector of each block.  So the places that it reads
differ by constants, and one bounds check is enough for them.  For `a[i, p]` with 16 terms of
128 rows, that is

    var<workgroup> a_tile: array<array<array<vec4f, 16>, 2>, 16>;   // term, block, vector

Where memory is contiguous along the reduction instead, as here, an invocation loads four
rows of four terms each, and transposes them in registers:

    a_load_line_0 = a[row 0, terms 0 to 3]        a_tile[p] = the x of all four lines
    a_load_line_1 = a[row 1, terms 0 to 3]   ->   a_tile[p + 1] = their y
    ...                                           ...

Either way an invocation stores whole vectors, and no invocation writes a part of another
one's vector: WGSL allows a write to a component to write the whole vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Final, TypeVar, final

from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Expr, Index
from kerngen.schedule.contraction import memory_axis, tile_axis
from kerngen.schedule.gemm.phases import Phases
from kerngen.schedule.gemm.tiling import VECTOR, Tiling
from kerngen.schedule.gemm.unit import Unit
from kerngen.schedule.gemm.window_reader import Sums, WindowReader
from kerngen.schedule.gemm.windows import Digits, Neighbours
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.linear import Linear, flat_terms, linear_read
from kerngen.schedule.lowering.positions import places, unravel
from kerngen.schedule.lowering.values import LANES
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

_VECTOR_BYTES: Final = 16

BANKS: Final = 8
"""How many vectors of 16 bytes lie side by side in the banks of workgroup memory: 128 bytes."""

T = TypeVar("T")


@final
@dataclass
class Operand:
    """Builds the WGSL that loads the tiles of one operand into workgroup memory.

    - `factor`: the operand as an expression, such as `a[i, p]`
    - `outer`: the index that only this operand has, `i`; `over`: the indices of the reduction,
      for all of which there is one counter
    - `origin`: the first place of the workgroup's tile along `outer`; along it, a tile has
      `blocks` blocks of `across` vectors
    - `whole`: whether the lengths are multiples of 4, so that all reads are of whole vectors
    - `tiles`: the workgroup arrays that operands of other loops have declared, by name and
      type, for reuse
    - `group`: for a factor that is no matrix, all indices that only this operand has, for which
      there is one counter, too; `outer` is the last of them (`windows.py`)
    - `spreads`: whether the four elements of a vector lie apart where an invocation reads them
      one by one, across the terms, or with `singly` stores results one by one along `outer`.
      Spread, they are `gap` apart, as many as a line of the tile has vectors: then
      neighbouring invocations read and write neighbours.

          gap 1:    lane 0 reads 0 1 2 3,       lane 1 reads 4 5 6 7
          gap 16:   lane 0 reads 0 16 32 48,    lane 1 reads 1 17 33 49

    - `phases`: the phases of the columns, of which a tile has one (`phases.py`)
    - `undivided`: whether all numbers that places of a window are divided by are 1
    - `clamps`: whether vectors of terms beyond the last one are read as those of the last one;
      else no turn has such terms, or single elements are read, whose addresses are clamped

    Beyond the end of `outer` the last place is read, as no result uses it; terms beyond
    the last one are 0.
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
    batch: dict[Index, t.Expr] = field(default_factory=dict)
    tiles: dict[tuple[str, str], t.Expr] = field(default_factory=dict)
    group: tuple[Index, ...] = ()
    spreads: bool = False
    singly: bool = False
    phases: Phases | None = None
    undivided: bool = False
    clamps: bool = False
    _units: list[Unit] = field(default_factory=list)
    _vector: str = ""

    def __post_init__(self) -> None:
        """Decide how the tile is filled, and declare it."""
        # The axis along which memory has neighbours, and whether they are transposed.
        axis = tile_axis(self.factor, self.over[-1], self.outer)
        if self.group:
            # The strides of a window are numbers of the call, which the compiler doesn't
            # know: without a contiguous axis, neighbours of the result are as good as any.
            own = memory_axis(self.factor, self.over[-1], self.outer)
            axis = own or self.outer
        self.along_terms = axis == self.over[-1]
        self.turns_over = self.along_terms and self.whole
        apart = self.singly if self.along_terms else not self.whole
        self.gap = self.blocks * self.across if self.spreads and apart else 1
        # Four neighbours along the terms belong to four lines of the tile.
        self.lines = VECTOR if self.turns_over else 1
        self.linear = linear_read(self.factor, self.outer, self.over, axis)
        self.line = self.blocks * self.across
        self.count = self.line * self.tiling.k // self.lines
        # A line of the tile has the vectors of one term, so that a turn reads line
        # after line.  With terms along memory a line is in blocks, else flat: that is 46.5
        # and not 45.9 TFLOP/s of A^T B on an H200 (decision 11).
        if self.along_terms:
            sizes = [self.across + self.tiling.pad, self.blocks, self.tiling.k]
        else:
            sizes = [self.line + self.tiling.pad, self.tiling.k]
        if self.tiling.buffers > 1:
            sizes.append(self.tiling.buffers)
        type_ = self.vector_type
        for size in sizes:
            type_ = f"array<{type_}, {size}>"
        size = _VECTOR_BYTES * prod(sizes)
        # Operands that are in use at different times share their workgroup memory.
        made = self.tiles.get((self.name, type_))
        if made is None:
            made = self.builder.workgroup_array(f"{self.name}_tile", type_, size)
            self.tiles[self.name, type_] = made
        self._tile = made
        self._neighbours: list[Neighbours] = []
        self._digits: list[Digits] = []
        self._places: dict[Neighbours, tuple[Sums, ...]] = {}
        self._terms: dict[Digits, Sums] = {}

    @cached_property
    def _reader(self) -> WindowReader:
        """The reader of single elements, for factors that are read in windows."""
        return WindowReader(
            self.builder,
            self.factor,
            self.name,
            self.over,
            self.phases,
            undivided=self.undivided,
        )

    def tile(self, buffer: t.Expr | None) -> t.Expr:
        """Return the tile's variable; of two buffered tiles, the one of number `buffer`."""
        return self._tile if buffer is None else self._tile[buffer]

    @property
    def lanes(self) -> int:
        """The number of elements that an address of the buffer counts as one: 1 or 4."""
        return LANES if self.whole else 1

    @property
    def counter(self) -> str:
        """The name of the variable that counts terms: that of the reduction's index."""
        return self.over[0].name if len(self.over) == 1 else "term"

    @property
    def vector_type(self) -> str:
        """The WGSL type of four neighbours."""
        return wgsl_type(self.factor.type, LANES)

    def place(self, batch: dict[Index, t.Expr]) -> list[t.Stmt]:
        """Return `let`s of which vectors of the tile this invocation loads, and from where.

        Of a tile with more vectors than invocations, each loads several, in one `Unit` each:

            let a_unit = lane;                              // which of the tile's vectors
            let a_at = a_unit >> 2u;                        // its place along i
            let a_p = (a_unit & 3u) * 4u;                   // its term
            let a_i_line_0 = min(tile_row + a_at * 4u, u.m - 1u);
            let a_from_line_0 = a_i_line_0 * (u.k >> 2u) + (a_p >> 2u);
        """
        self.batch = dict(batch)
        turns = -(-self.count // self.tiling.invocations)
        self._neighbours, self._digits = [], []
        self._units = [Unit(self, number, turns) for number in range(turns)]
        return [stmt for unit in self._units for stmt in unit.place()]

    def declare(self) -> list[t.Stmt]:
        """Return declarations of the registers in which loaded vectors wait for `stage`."""
        registers = [
            t.Var(register.name, None, self.vector_type)
            for unit in self._units
            for register in unit.registers
        ]
        digits = (stmt for digits in self._digits for stmt in digits.declare())
        forms = self._reader.declare() if self.group else ()
        return [*registers, *digits, *forms]

    def begin(self, first: t.Expr) -> list[t.Stmt]:
        """Return loads of the first turn's terms, from `first` on, into registers."""
        found = [stmt for u in self._units for stmt in u.find_term(first)]
        return [*found, *self._name_terms(), *self._load(first)]

    def fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Return loads of the next turn's terms, from `first` on, into registers."""
        advanced = [stmt for digits in self._digits for stmt in digits.advance()]
        return [*advanced, *self._name_terms(), *self._load(first)]

    def _load(self, first: t.Expr) -> list[t.Stmt]:
        if self.group:
            return self._load_windows()
        return [
            stmt for unit in self._units for stmt in unit.guarded(unit.fetch(first))
        ]

    def _load_windows(self) -> list[t.Stmt]:
        """Load all of a turn under one condition, so that no load waits for another."""
        loaded: list[t.Stmt] = []
        for divided, condition in self._reader.cases():
            body = [
                stmt
                for unit in self._units
                for stmt in unit.guarded(unit.fetch_window(divided=divided))
            ]
            loaded += body if condition is None else [t.If(condition, (*body,))]
        return loaded

    def _name_terms(self) -> list[t.Stmt]:
        """Return `let`s of what a turn's terms add to the places of a window."""
        body: list[t.Stmt] = []
        self._terms = {
            digits: self._reader.name_sums(digits.at, digits.name, body)
            for digits in self._digits
        }
        return body

    def stage(self, buffer: t.Expr | None) -> list[t.Stmt]:
        """Return statements that store the registers to the tile of number `buffer`."""
        tile = self.tile(buffer)
        return [stmt for unit in self._units for stmt in unit.guarded(unit.stage(tile))]

    def inside(self, outer: t.Expr) -> t.Expr:
        """Return a position along `outer`, clamped to the last one that a vector can begin at.

        Without whole vectors the position is returned as it is: `_declare_vector` clamps reads.
        """
        if not self.whole:
            return outer
        return self._before_end(outer, 1 if self.turns_over else VECTOR)

    def vector_from(self, linear: Linear, address: t.Expr) -> t.Expr:
        """Return the WGSL that reads four neighbours from an address on."""
        if self.whole:
            return self._at_address(linear.indices, address, [])
        if not self._vector:
            self._vector = self._declare_vector_from(linear)
        return t.call(self._vector, address)

    def _at_address(
        self, indices: tuple[Index, ...], address: t.Expr, block: list[t.Stmt]
    ) -> t.Expr:
        element = (indices, address)
        lowerer = Lowerer(self.builder, {}, block, label=self.name, element=element)
        return lowerer.lower(self.factor).expr

    def vector(self, outer: t.Expr, over: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return the WGSL that reads four neighbours at a position along `outer` and `over`."""
        if not self.whole:
            if not self._vector:
                self._vector = self._declare_vector()
            return t.call(self._vector, *self._place(self.batch, outer, over))
        axis = self.over[-1] if self.turns_over else self.outer
        terms = places(self.builder, self.over, over)
        at = {**self.batch, self.outer: outer, **terms}
        lowerer = Lowerer(self.builder, at, block, vector=axis, label=self.name)
        return lowerer.widen(lowerer.lower(self.factor), self.factor.type)

    def vector_of(self, line: t.Expr, block: int, at: t.Expr, term: t.Expr) -> t.Expr:
        """Return the vector that an invocation reads from block `block` of a tile's line."""
        if not self.along_terms:
            return line[at + block * self.across]
        return line[block][self.turned(at, term)]

    def turned(self, at: t.Expr, term: t.Expr) -> t.Expr:
        """Return a vector's place in its block, XORed with the number for a term."""
        turn = self.exchange(term)
        return at if turn == t.ZERO else t.Binary("^", at, turn)

    def place_in(self, line: t.Expr, at: t.Expr) -> t.Expr:
        """Return vector number `at` of a tile's line, for use when the loop over terms is done."""
        tile = self.tile(t.ZERO if self.tiling.buffers > 1 else None)
        if not self.along_terms:
            return tile[line][at]
        return tile[line][at // self.across][at % self.across]

    def exchange(self, term: t.Expr) -> t.Expr:
        """Return the number with which a vector's place in its block is XORed, for a term.

        Where memory runs along the terms, neighbouring lanes store to neighbouring lines of
        the tile, at the same place of each: they would all meet in one of 8 banks.  XORed
        with a part of the term's number, the places differ:

            term       0 1 2 3    4 5 6 7    8 ...       (16 terms, transposed in fours)
            place of   at ^ 0     at ^ 2     at ^ 4

        Beyond 32 terms, whose lines have all places in turn, they begin again.
        """
        if not self.along_terms or self.across % BANKS or self.tiling.k % BANKS:
            return t.ZERO
        if not self.turns_over:
            return term % BANKS
        if self.tiling.k > VECTOR * BANKS:
            return term // VECTOR % BANKS
        return term // VECTOR * VECTOR // (self.tiling.k // BANKS)

    def clear(self, count: t.Expr) -> list[t.Stmt]:
        """Return statements that set the loaded terms from number `count` on to 0."""
        return [stmt for unit in self._units for stmt in unit.clear(count)]

    @property
    def last_term(self) -> t.Expr:
        """The number of the last term."""
        return t.Binary("-", self.builder.size(self.over), t.ONE)

    # Windows

    def neighbours(self, name: str) -> tuple[Neighbours, bool]:
        """Return the places of a unit's vector, and whether an earlier unit has the same."""
        if self._neighbours and not self.along_terms and self._same(self.line):
            return self._neighbours[0], True
        group = self.group
        if self.phases and group == self.phases.columns:
            group = self.phases.places
        found = Neighbours(self.builder, group, name, self.gap)
        self._neighbours.append(found)
        return self._neighbours[-1], False

    def digits(self, name: str) -> tuple[Digits, bool]:
        """Return the indices of a unit's term, and whether an earlier unit has the same."""
        if self._digits and self.along_terms and self._same(self.tiling.k):
            return self._digits[0], True
        over = self.phases.terms if self.phases else self.over
        self._digits.append(Digits(self.builder, over, name, self.tiling.k))
        return self._digits[-1], False

    def name_places(self, neighbours: Neighbours) -> list[t.Stmt]:
        """Return `let`s of what the places of a unit's vector have in all terms."""
        body: list[t.Stmt] = []
        self._places[neighbours] = tuple(
            self._reader.name_sums(
                {**self.batch, **at}, neighbours.name, body, f"_{number}"
            )
            for number, at in enumerate(neighbours.at)
        )
        return body

    def window(
        self, neighbours: Neighbours, digits: Digits, *, divided: bool
    ) -> t.Expr:
        """Return four elements of a term; their places are `divided` by numbers of the call."""
        places, term = self._places[neighbours], self._terms[digits]
        return self._reader.vector(places, term, divided=divided)

    def _same(self, length: int) -> bool:
        """Whether all units of an invocation have the same place of a line."""
        return self.tiling.invocations % length == 0

    # The edge

    def _declare_vector_from(self, linear: Linear) -> str:
        """Declare a WGSL function that reads four neighbours from an address on.

        Past the end of the tensor it reads the last element, whose value does not matter.
        There is no branch: with one, 4095 x 4097 x 4093 takes 3.76 ms on an H200, and 3.24
        without (decision 11).

            fn a_vector(start: u32) -> vec4f {
                let last = u.m * u.k - 1u;
                return vec4f(a[min(start, last)], a[min(start + u.k, last)], ...);
            }
        """
        s = self.builder
        name = s.fresh(f"{self.name}_vector")
        start, last = t.Ident(s.fresh("start")), t.Ident(s.fresh("last"))
        body: list[t.Stmt] = [t.Let(last.name, linear.last(s))]
        addresses = (
            start + linear.step(s, self.outer, t.u32(n * self.gap), 1)
            for n in range(VECTOR)
        )
        elements = tuple(
            self._at_address(linear.indices, t.call("min", address, last), body)
            for address in addresses
        )
        about = (
            f"{self._shown} of the operand {self.name}; beyond its end, the last one."
        )
        return self._declare(name, ((start.name, "u32"),), body, elements, about)

    @property
    def _shown(self) -> str:
        """Describe a vector, for a comment."""
        if self.gap == 1:
            return f"Four neighbours along {self.outer.name}"
        return f"Four elements along {self.outer.name}, {self.gap} apart,"

    def first(self, vector: t.Expr, line: int = 0) -> t.Expr:
        """Return where a vector of the tile, or line `line` of it, begins along `outer`."""
        width = 1 if self.gap > 1 else VECTOR
        return self.origin + (vector * width + line * self.gap)

    def _declare(
        self,
        name: str,
        parameters: tuple[tuple[str, str], ...],
        body: list[t.Stmt],
        elements: tuple[t.Expr, ...],
        about: str,
    ) -> str:
        type_ = self.vector_type
        body.append(t.Return(t.Call(type_, elements)))
        function = wgsl.Function(name, parameters, type_, tuple(body), about)
        self.builder.declare(f"function {name}", function)
        return name

    def _place(self, batch: Mapping[Index, T], outer: T, term: T) -> list[T]:
        """Return the values in an element's address, the contiguous one last."""
        used = free_indices(self.factor)
        ends = (outer, term) if self.along_terms else (term, outer)
        return [*(at for index, at in batch.items() if index in used), *ends]

    def _declare_vector(self) -> str:
        """Declare the function that reads four neighbours at a place along `outer` and `over`.

        Places beyond an end are moved to the last one.
        """
        s = self.builder
        single = len(self.over) == 1
        number = s.name(self.counter, "value" if single else "counter")
        names = {i: s.name(i.name) for i in (*self.batch, self.outer)}
        batch = {index: names[index] for index in self.batch}
        place = self._place(batch, names[self.outer], number)
        name = s.fresh(f"{self.name}_vector")
        at = {index: t.Ident(called) for index, called in names.items()}
        body: list[t.Stmt] = []
        elements = tuple(self._elements(at, t.Ident(number), body))
        about = (
            f"{self._shown} of the operand {self.name}; beyond an end, the last ones."
        )
        parameters = tuple((called, "u32") for called in place)
        return self._declare(name, parameters, body, elements, about)

    def _elements(
        self, at: Mapping[Index, t.Expr], term: t.Expr, body: list[t.Stmt]
    ) -> Iterator[t.Expr]:
        s, nearest = self.builder, t.Ident(self.builder.fresh("nearest"))
        last = t.Binary("-", s.size(self.over), t.ONE)
        body.append(t.Let(nearest.name, t.call("min", term, last)))
        flat = flat_terms(self.factor, self.over)
        terms = {} if flat else unravel(s, body, self.over, nearest)
        for n in range(VECTOR):
            outer = self._before_end(at[self.outer] + n * self.gap, 1)
            if flat:
                own = {**at, self.outer: outer}
                address = flat.address(s, own, s.size(self.over), nearest)
                yield self._at_address(flat.indices, address, body)
                continue
            place = {**at, self.outer: outer, **terms}
            yield Lowerer(s, place, body, label=self.name).lower(self.factor).expr

    def _before_end(self, outer: t.Expr, width: int) -> t.Expr:
        """Return a place, or the last one from which on there are `width` elements."""
        last = t.Binary("-", self.builder.extent(self.outer.extent), t.u32(width))
        return t.call("min", outer, last)
