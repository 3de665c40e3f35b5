"""The shader of strategy `gemm`.

A workgroup computes a tile of the result.  Each turn of its loop brings `k` terms of both
operands into workgroup memory; the next turn's operands are loaded before this turn's
arithmetic.  Accumulators are named vectors in unrolled code.  The steps of the stage,
activation and bias included, are done by the function `finish`; of tiles that several
workgroups share, a second dispatch does them (`stream.py`).

The loop over the terms, of A B^T with 8 x 8 sums per invocation, without what is alike:

    a_load_line_0 = a[a_from_line_0];
    for (var following = 16u; following < u.k + 16u; following += 16u) {
        a_tile[a_p][...] = vec4f(a_load_line_0.x, a_load_line_1.x, ...);
        workgroupBarrier();
        a_load_line_0 = a[a_from_line_0 + (fetched >> 2u)];
        {  // p = 0
            let a_0 = a_tile[0u][0u][row];
            let b_0 = b_tile[0u][0u][column];
            acc_0_0 += a_0.x * b_0;
        }
        workgroupBarrier();
    }
    finish(tile_row + ..., tile_column + ..., acc_0_0);
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

from kerngen.ir.nodes import Expr, Index
from kerngen.plan.size import ALWAYS, ZERO, ceil_div, divides, maximum
from kerngen.schedule.contraction import (
    Contraction,
    product_of,
    sides_of,
    tile_axis,
)
from kerngen.schedule.gemm.operand import Operand
from kerngen.schedule.gemm.phases import (
    Phases,
    name_lengths,
    of_strides,
    set_lengths,
    write_phase,
)
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.gemm.result import TileResult
from kerngen.schedule.gemm.shares import TermShares
from kerngen.schedule.gemm.slices import Slices
from kerngen.schedule.gemm.stream import ProductTiles, slot_of
from kerngen.schedule.gemm.tiling import VECTOR, Tiling
from kerngen.schedule.gemm.triangle import TermRange
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    counted_terms,
    reduction_of,
)
from kerngen.schedule.lowering.linear import flat_terms
from kerngen.schedule.lowering.positions import linear_group
from kerngen.schedule.lowering.steps import (
    tensors_in_runs,
    vector_tensors,
)
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


def wide_tensors(found: Contraction, row: Index) -> set[str]:
    """Return the names of the tensors that a product's factors read as vectors of four."""
    names: set[str] = set()
    for factor, own in ((found.left, row), (found.right, found.column)):
        names |= tensors_in_runs((factor,), tile_axis(factor, found.last, own))
    return names


@final
class Access(StrEnum):
    """How a shader reads factors and writes results: by the lengths that it is for.

    Vectors are of four neighbours; they are whole where lengths are multiples of 4.
    """

    ALIGNED = "aligned"
    """Vectors are loaded, and vectors are stored."""

    SINGLY = "singly"
    """Vectors are loaded, but results are stored one by one."""

    EDGE = "edge"
    """Elements are loaded and stored one by one."""

    @property
    def loads_vectors(self) -> bool:
        """Whether factors are loaded by vectors."""
        return self is not Access.EDGE

    @property
    def stores_vectors(self) -> bool:
        """Whether results are stored by vectors."""
        return self is Access.ALIGNED


@final
@dataclass
class GemmShader:
    """Builds the shader of a product.

    If the override PADDED is 1, the number of terms may be no multiple of `k`: the first turn is
    padded with zeros.  The padding costs 5 % of a large product, so that there is the
    override, and not a test of the lengths.

    With `phases`, a tile has the results of one phase, and its terms; `one_phase` is whether
    the shader is for calls with one phase, where all divisors are 1.
    """

    task: Task
    tiling: Tiling
    access: Access
    phases: Phases | None = None
    one_phase: bool = False
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        found, self.row = product_of(self.task)
        self.column, self.over = found.column, found.over
        self.sides = sides_of(self.task)
        rows, columns = self.sides
        self.joins = len(rows) > 1 or len(columns) > 1
        self.shares = TermShares.of(self.task, self.tiling, self.phases)
        self.builder = ShaderBuilder(self.task, self._lanes(found))
        if self.phases:
            set_lengths(self.builder, self.phases)
            self.over = self.phases.terms
        t_ = self.tiling
        left = t_.micro_m // VECTOR, t_.rows
        right = t_.micro_n // VECTOR, t_.columns
        # Where they are stored one by one, neighbours in a row are of neighbouring invocations:
        # 1111 x 333 x 2222 of `nt` takes 63 us so on an H200, and 67 where they are not.
        singly = not self.access.stores_vectors
        self.left = self._operand(found.left, rows, "a", *left)
        self.right = self._operand(found.right, columns, "b", *right, singly=singly)
        self.slices: Slices | None = None
        if t_.slices > 1:
            self.slices = Slices(self.builder, t_, self.left, self.right)
        self.registers = RegisterTile(
            self.builder,
            self.tiling,
            found,
            self.left,
            self.right,
            gaps=(self.left.gap, self.right.gap),
            slices=self.slices,
        )
        strides = of_strides(self.builder, self.phases) if self.phases else {}
        self.tiles = ProductTiles(self.builder, self.body, self.shares, strides)
        self.bounded: TermRange | None = None
        if found.is_bounded:
            self.bounded = TermRange(self.tiles, self.tiling, found, self.row)
        self.whole_tile: t.Expr = t.ZERO
        self.slot: t.Expr = t.ZERO
        self.padding: t.Expr = t.ZERO
        self.begin: t.Expr = t.ZERO
        self.end = self.builder.size(self.over)

    def _lanes(self, found: Contraction) -> dict[str, int]:
        """Return the tensors that are bound as vectors of four, each with 4."""
        wide: set[str] = set()
        if self.access.loads_vectors:
            wide = wide_tensors(found, self.row)
        if self.access.stores_vectors:
            wide |= vector_tensors(self.task.stage, self.task.values, self.column)
        if self.tiling.stream:
            wide.add(self.task.scratch_name("parts"))
        return dict.fromkeys(wide, LANES)

    def _operand(
        self,
        factor: Expr,
        side: tuple[Index, ...],
        name: str,
        blocks: int,
        across: int,
        *,
        singly: bool = False,
    ) -> Operand:
        # A factor with one own index and contiguous terms, as the kernel of a convolution,
        # is read by addresses; only other factors of a convolution are read in windows.
        flat = len(side) == 1 and not self.phases and flat_terms(factor, self.over)
        return Operand(
            self.builder,
            factor,
            side[-1],
            product_of(self.task)[0].over,
            name,
            blocks,
            across,
            self.tiling,
            self.access.loads_vectors,
            group=side if self.joins and not flat else (),
            spreads=True,
            singly=singly,
            phases=self.phases,
            undivided=self.one_phase,
        )

    @property
    def name(self) -> str:
        """The name of the variant, and of its entry point but for the main one."""
        if self.phases:
            return "phased"
        return "undivided" if self.one_phase else self.access.value

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        t_ = self.tiling
        shares, terms = self.shares, counted_terms(reduction_of(self.task))
        if t_.stream:
            counted = shares.all_turns
            terms = counted if terms == ZERO else maximum(terms, counted)
        body = self._streamed() if t_.stream else self._tile_by_tile()
        turns = ceil_div(domain_size(product_of(self.task)[0].over), t_.k)
        return self.builder.finish(
            body,
            groups=shares.groups if t_.stream else shares.tiles,
            workgroup_size=t_.invocations,
            summary=self._summary(),
            variant="" if self.access is Access.ALIGNED else self.name,
            terms=terms,
            trips=shares.trips if t_.stream else turns,
        )

    def _summary(self) -> str:
        t_ = self.tiling
        tile = f"{t_.m} x {t_.n} tiles, {t_.micro_m} x {t_.micro_n} sums per invocation"
        if self.phases:
            return f"one workgroup per tile of one phase of a stride, {tile}."
        if self.one_phase:
            tile = f"for strides of 1, {tile}"
        if not t_.stream:
            return f"one workgroup per tile, {tile}."
        return f"{tile}; where that is faster, workgroups share the terms of all."

    # The tile, or the tiles, of this workgroup

    def _tile_by_tile(self) -> list[t.Stmt]:
        """Write the computation of the tile that has the workgroup's number."""
        group = self._let("group", linear_group(self.builder))
        self.tiles.name_axes()
        # More workgroups than one dimension admits fold into two, and some are left over.
        beyond = group >= self.tiles[self.shares.tiles]
        self.body.append(t.If(beyond, (t.Return(),)))
        self._pad_terms()
        # Tiles with the most terms first: if a device began them last, the rest of it would
        # be idle until they end.
        self._compute(group, self.bounded.grow if self.bounded else (False, False))
        return self.body

    def _streamed(self) -> list[t.Stmt]:
        """Write the workgroup's share of the turns of all tiles, tile after tile.

        One trip of the loop is a tile, or the part of it that belongs to the share:

            for (var turn = group * share; turn < end; turn = (turn / turns + 1u) * turns) {
                let first_turn = turn % turns;
                let last_turn = min(first_turn + (end - turn), turns);
                ...
            }
        """
        shares, tiles = self.shares, self.tiles
        group = self._let("group", linear_group(self.builder))
        tiles.name_shares()
        turns, share = tiles[shares.turns], tiles[shares.share]
        all_turns = tiles[shares.all_turns]
        self.body.append(t.If(group * share >= all_turns, (t.Return(),)))
        end = self._let("end", t.call("min", group * share + share, all_turns))
        self._pad_terms()
        # Statements from here on are the body of the loop over the tiles of the share.
        before, turn = len(self.body), t.Ident(self.builder.fresh("turn"))
        first = self._let("first_turn", turn % turns)
        last = self._let("last_turn", t.call("min", first + (end - turn), turns))
        last_term = last * self.tiling.k
        if not self.access.loads_vectors:
            last_term = t.call("min", last_term, self.builder.size(self.over))
        elif self.padding != t.ZERO:
            last_term = t.Binary("-", last_term, self.padding)
        self.begin = self._let("begin", first * self.tiling.k)
        self.end = self._let("last_term", last_term)
        # Only the workgroup with all turns of a tile has its results; others leave sums
        # in a slot, of which a workgroup has two: for the tile it begins and the one it
        # goes on with.
        self.whole_tile = self._let("whole", t.Binary("-", last, first).equals(turns))
        self.slot = self._let("slot", slot_of(group, begun=first.equals(0)))
        self._compute(turn // turns)
        # A share may begin and end within a tile; the next tile begins at its first turn.
        following = t.Assign(turn, (turn // turns + 1) * turns)
        loop = (*self.body[before:],)
        loop_over = t.For(turn.name, group * share, turn < end, following, loop)
        return [*self.body[:before], loop_over]

    def _pad_terms(self) -> None:
        """Write how many terms are padded in front, where vectors are whole but turns aren't.

        With 16 terms to a turn:

            let padding = PADDED * (((u.k + 15u) >> 4u) * 16u - u.k);

        Without the override's value 1 the padding is 0, and a driver's compiler drops it.
        """
        terms, k = domain_size(self.over), self.tiling.k
        if (
            self.access.loads_vectors
            and divides(k, terms) != ALWAYS
            and self.registers.found.is_product
        ):
            count = self.tiles[ceil_div(terms, k) * k]
            padding = t.Binary("-", count, self.builder.size(self.over))
            padded = self.builder.override("PADDED", 0)
            self.padding = self._let("padding", padded * padding)

    def _compute(
        self, tile: t.Expr, backwards: tuple[bool, bool] = (False, False)
    ) -> None:
        """Write the computation of tile number `tile`; `backwards`: `ProductTiles.place`."""
        batch, self.left.origin, self.right.origin = self.tiles.place(tile, backwards)
        if self.phases:
            rows, columns = (self.tiles[axis] for axis in self.shares.tiled_axes)
            number = self._let("phase", tile // columns // rows)
            self.body += name_lengths(self.builder, self.phases)
            self.body += write_phase(self.builder, self.phases, number)
        self.body += self.registers.place()
        for operand in (self.left, self.right):
            self.body += operand.place(batch)
        self.body += [
            t.Blank(),
            *self.registers.declare(in_loop=bool(self.tiling.stream)),
        ]
        if self.bounded:
            origin = self.left.origin, self.right.origin
            ends = self.begin, self.end
            self.begin, self.end = self.bounded.write(origin, *ends, self.padding)
        self.body += [t.Blank(), *self._loop()]
        if self.slices:
            self.body += self.slices.join(self.registers.found, self.registers.totals)
        result = TileResult(
            self.builder,
            self.tiling,
            self.registers,
            self.access.stores_vectors,
            (self.left.origin, self.right.origin),
            self.whole_tile,
            self.slot,
            self.phases,
        )
        written = result.write(batch)
        self.body += [
            t.Blank(),
            *(self.slices.first(written) if self.slices else written),
        ]

    def _let(self, wanted: str, value: t.Expr) -> t.Ident:
        return self.tiles.let(wanted, value)

    # The product

    def _loop(self) -> list[t.Stmt]:
        """Write the loop over the terms, with one tile of each operand or with two.

        The first turn's terms are loaded into registers before the loop.
        """
        operands = (self.left, self.right)
        declared = [stmt for operand in operands for stmt in operand.declare()]
        if self.access.loads_vectors:
            begin = self._fetch_begin()
        else:
            # Where there are no terms, a factor is empty: nothing of it can be read.
            loaded = (x for o in operands for x in o.begin(self.begin))
            begin = [t.If(self.begin < self.end, (*loaded,))]
        turn = self._turn_of_two if self.tiling.buffers > 1 else self._turn
        return [*declared, *begin, *turn(t.Ident(self.builder.fresh("following")))]

    def _turn(self, following: t.Ident) -> list[t.Stmt]:
        # Reads of the next turn are under way while this one is computed.  Both
        # barriers are needed: all have stored before any reads, and have read before
        # any stores.
        body = [
            *self._stage(following, None),
            t.BARRIER,
            *self._fetch(following),
            *self._accumulate(following, None),
            t.BARRIER,
        ]
        return [self._over_terms(following, body)]

    def _turn_of_two(self, following: t.Ident) -> list[t.Stmt]:
        """Write the loop with two tiles of each operand: one is filled, the other in use."""
        buffer = t.Ident(self.builder.fresh("buffer"))
        k = self.tiling.k
        # One barrier is enough: a turn reads one tile and stores to the other.
        body = [
            *self._fetch(following),
            *self._accumulate(following, buffer),
            t.Assign(buffer, t.Binary("-", t.ONE, buffer)),
            *self._stage(following + k, buffer),
            t.BARRIER,
        ]
        return [
            t.Var(buffer.name, t.ZERO),
            *self._stage(self.begin + k, buffer),
            t.BARRIER,
            self._over_terms(following, body),
        ]

    def _over_terms(self, following: t.Ident, body: list[t.Stmt]) -> t.Stmt:
        """Write the loop over turns, whose counter is the first term of the next turn."""
        # The first turn is loaded before the loop, which has the loads of the turn to
        # follow.
        k, start = self.tiling.k, self.begin + self.tiling.k
        if self.padding != t.ZERO:
            start = t.Binary("-", start, self.padding)
        return t.count_up(following.name, start, self.end + k, k, *body)

    def _stage(self, following: t.Expr, buffer: t.Expr | None) -> list[t.Stmt]:
        """Store a turn's terms, those before `following`, to the tiles.

        Of a sum of products, terms beyond the last one are cleared: 0 times 0 adds nothing.
        Of any other contraction they are stored as loaded, and left out when added.
        """
        operands = (self.left, self.right)
        stores = [stmt for operand in operands for stmt in operand.stage(buffer)]
        if self.access.loads_vectors or not self.registers.found.is_product:
            return stores
        return [self._clear(following > self.end, self._left(following)), *stores]

    def _left(self, following: t.Expr) -> t.Expr:
        """Return how many terms the turn before `following` has, if it is the last."""
        return t.Binary("-", self.end + self.tiling.k, following)

    def _clear(self, condition: t.Expr, count: t.Expr) -> t.Stmt:
        """Set the loaded terms to 0 that are not among the first `count`."""
        left = t.Ident(self.builder.fresh("left"))
        operands = (self.left, self.right)
        cleared = [stmt for operand in operands for stmt in operand.clear(left)]
        return t.If(condition, (t.Let(left.name, count), *cleared))

    def _fetch_begin(self) -> list[t.Stmt]:
        """Load the first turn of whole vectors: terms before the first one are 0.

        The padding is in front of the first term, so that only the loads before the loop
        clear anything: a check within the loop cost 5 % of a large product.
        """
        if self.padding == t.ZERO:
            return self._fetch(self.begin)
        from_term = self.begin
        if from_term != t.ZERO:
            from_term = t.call("max", self.begin, self.padding)
            from_term = t.Binary("-", from_term, self.padding)
        count = t.Binary("-", t.u32(self.tiling.k), self.padding)
        return [
            *self.left.fetch(from_term),
            *self.right.fetch(from_term),
            self._clear(self.begin < self.padding, count),
        ]

    def _fetch(self, first: t.Expr) -> list[t.Stmt]:
        """Load the terms from `first` on.

        Behind the last turn nothing uses what is loaded: with whole vectors the last turn is
        loaded again, as loads inside of an `if` are slower (docs/decisions/0011).
        """
        body: list[t.Stmt] = []
        if self.access.loads_vectors and first != t.ZERO:
            last = t.Binary("-", self.end, t.u32(self.tiling.k))
            fetched = self.builder.let(body, "fetched", t.call("min", first, last))
            first = fetched
        return [*body, *self.left.fetch(first), *self.right.fetch(first)]

    def _accumulate(self, following: t.Expr, buffer: t.Expr | None) -> list[t.Stmt]:
        """Add a turn's terms to the accumulators, in unrolled code.

        Under a condition, a turn that has terms of some elements alone takes a loop, which
        tests each term:

            let has_all = ...;
            if (has_all) { ... }
            if (!has_all) { ... }
        """
        left_over = None
        if not self.access.loads_vectors and not self.registers.found.is_product:
            left_over = self._left(following)
        terms = range(self.tiling.slice_terms)
        every = [self.registers.accumulate(p, buffer, left_over) for p in terms]
        if not self.bounded:
            return every
        some = self.bounded.some_terms(self.registers, following, buffer, left_over)
        has_all = t.Ident(self.builder.fresh("has_all"))
        return [
            t.Let(has_all.name, self.bounded.has_all(following)),
            t.If(has_all, (*every,)),
            t.If(t.Unary("!", has_all), (*some,)),
        ]
