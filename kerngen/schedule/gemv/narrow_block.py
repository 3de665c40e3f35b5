"""Products along the reduction with a matrix of narrow integers, in runs of neighbours.

`NarrowRowwise` reads runs of eight integers, `WordRowwise` runs of four words: 32 integers of
4 bits, or 16 of 8.  `narrow_runs.py` turns the integers of a run into f32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Final, final

from kerngen.ir.nodes import Index
from kerngen.ir.types import Storage
from kerngen.schedule.gemv.narrow_runs import NeighbourRun, Reads, RunReader, power_bits
from kerngen.schedule.gemv.row_block import suffix
from kerngen.schedule.gemv.rowwise_block import Rowwise
from kerngen.schedule.gemv.rowwise_join import LaneGroups
from kerngen.schedule.gemv.shape import GemvShape
from kerngen.schedule.lowering.cooperation import BYTES, reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, across
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import EVERYWHERE
from kerngen.shader import tree as t

MOST_SHARED: Final = EVERYWHERE.workgroup_bytes * 3 // 4
"""The most bytes of workgroup memory for the rows, 12 KiB of 16; sums go through the rest."""


def fits_words(shape: GemvShape, run: int) -> bool:
    """Whether lanes can read `run` integers, four words, and the rows from workgroup memory.

    The rows must fit there, and each group of lanes must copy at least one vector of a run.
    """
    is_shared = shape.across <= run // LANES and shape.unroll == 1
    return is_shared and _shared_vectors(shape, run) * LANES * BYTES <= MOST_SHARED


def _shared_vectors(shape: GemvShape, run: int) -> int:
    return shape.rows * (run // LANES) * _stride(shape)


def _stride(shape: GemvShape) -> int:
    """Return how far apart the vectors of a run are in the array of rows.

    It is one more than the lanes, which are a power of two: an odd stride spreads the vectors
    that are stored together over different banks.
    """
    return shape.along + 1


@dataclass
class NarrowRowwise(Rowwise):
    """Builds a shader whose lanes read eight neighbouring integers at once.

    A factor that all eight share, such as the scale of their block, is `same` here:

        let four = left_0 * right_0 + left_1 * right_1;
        y_sum += same * (four.x + four.y + (four.z + four.w));
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._named_powers: dict[Storage, t.Ident] = {}

    def _rights(
        self, inner: Lowerer, columns: list[t.Expr], shift: tuple[int, int]
    ) -> Iterator[NeighbourRun]:
        """Read the right factor of every column, once for all rows."""
        (index,) = self.reduce.indices
        for number, column in enumerate(columns):
            there = replace(inner, at={**inner.at, self.column: column})
            which = suffix((number, len(columns)), shift)
            yield RunReader(
                there,
                index,
                self.names,
                which,
                self.width,
                partial(self._hold, there),
                self._powers,
            ).read(self.block.found.right)

    def _powers(self, storage: Storage) -> t.Expr:
        """Name the bits of the powers of two (`power_bits`), hidden from the compiler.

            let powers = vec4u(0x4b000008u, ...) + vec4u(u32(u.d + 128u < lane));

        The comparison is always false, but a compiler does not know that.  It also makes the
        bits differ between lanes: if all lanes had the same, as of a length alone, NVIDIA's
        compiler would make two instructions again (`narrow_runs.py`).
        """
        s, (index,) = self.builder, self.reduce.indices
        if storage not in self._named_powers:
            name = self._named_powers[storage] = t.Ident(s.fresh("powers"))
            never = s.extent(index.extent) + self.shape.lanes < s.lane
            nothing = t.call("vec4u", t.call("u32", never))
            self.body.append(t.Let(name.name, power_bits(storage) + nothing))
        return self._named_powers[storage]

    def _hold(self, inner: Lowerer, name: str, reads: Reads) -> t.Ident:
        """Name what `reads` reads at the place of a lowerer."""
        held = t.Ident(self.builder.name(name, "turn"))
        inner.block.append(t.Let(held.name, reads(inner)))
        return held

    def _take(
        self, inner: Lowerer, rights: Sequence[Any], shift: tuple[int, int]
    ) -> None:
        """Add the terms of a run to every total."""
        lefts = [*self._lefts(inner, shift)]
        fours = range(self.width // LANES)
        for column, right in enumerate(rights):
            values = [right.four(number, inner.block) for number in fours]
            # Vectors are added before their components: a run of 32 has 8 multiplications
            # of vectors, and one sum of four.
            for row, left in enumerate(lefts):
                pairs = zip(left, values, strict=True)
                terms: list[t.Expr] = [x.expr * value.expr for x, value in pairs]
                which = (row, self.shape.rows), (column, len(rights))
                name = t.Ident(
                    self.builder.name(f"four{suffix(*which, shift)}", "turn")
                )
                inner.block.append(t.Let(name.name, reduce(t.add, terms)))
                term = across("sum", name)
                if right.same is not None:
                    term = t.Binary("*", right.same, term)
                total = self.totals[row * len(rights) + column]
                inner.block.append(accumulate("sum", total, term))

    def _lefts(self, inner: Lowerer, shift: tuple[int, int]) -> Iterator[list[Value]]:
        """Name the vectors of every row."""
        (index,) = self.reduce.indices
        count = self.width // LANES
        fours = [
            replace(inner, at={**inner.at, index: inner.at[index] + n * LANES})
            for n in range(count)
        ]
        rows = zip(*(self.block.lefts(four) for four in fours), strict=True)
        for row, values in enumerate(rows):
            yield [
                self._left(four, value, (row, self.shape.rows), shift, (n, count))
                for n, (four, value) in enumerate(zip(fours, values, strict=True))
            ]

    def _left(self, inner: Lowerer, value: Value, *which: tuple[int, int]) -> Value:
        wide = Value(inner.widen(value, self.reduce.type), wide=True)
        return self._named_factor(inner, "left", wide, *which)


@final
@dataclass
class WordRowwise(NarrowRowwise):
    """Builds a shader whose lanes read four words at once, and the rows from workgroup memory.

    In a turn, groups of lanes across read different columns at the same places.  Lanes that
    read neighbouring runs of words would read vectors of the rows that are a run apart.  So
    all lanes copy these vectors to workgroup memory together, in the order of memory.

    The words of the next turn are read before this one's are multiplied, so that memory is
    never idle: on an H200, 16384 x 16384 in `i8` take 80 us so, and 90 us without.

        var words = w[...];                                     // of the first turn
        for (var first_p = 0u; first_p < u.d; first_p += 1024u) {
            let next_words = w[...];                            // of the next one
            workgroupBarrier();
            rows[...] = x[...];
            workgroupBarrier();
            if (p < u.d) { ... }                                // words times rows
            words = next_words;
        }
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        vectors = _shared_vectors(self.shape, self.width)
        held = vectors * LANES * BYTES
        self.held_bytes += held
        type_ = f"array<vec4f, {vectors}>"
        self.shared = self.builder.workgroup_array("rows", type_, held)
        name = self.reduce.indices[0].name
        self._last, self._begin, self._next = (
            t.Ident(self.builder.fresh(f"{which}_{name}"))
            for which in ("last", "begin", "next")
        )
        self._ahead: list[t.Stmt] = []
        self._after: list[t.Stmt] = []

    def _accumulate(self, at: dict[Index, t.Expr]) -> None:
        """Let each lane sum its terms of every row and column."""
        s, (index,) = self.builder, self.reduce.indices
        columns, end = self._start(at), s.extent(index.extent)
        start, step = self._along * self.width, self.shape.along * self.width
        place, first = t.Ident(s.name(index.name)), t.Ident(
            s.fresh(f"first_{index.name}")
        )
        # Lanes past the end read the last run; where there are no terms, place 0.
        last = t.call("max", end, self.width) - self.width
        self.body += [
            t.Let(self._last.name, last),
            t.Let(self._begin.name, t.call("min", start, self._last)),
        ]
        body: list[t.Stmt] = [
            t.Let(place.name, first + start),
            t.Let(self._next.name, t.call("min", place + step, self._last)),
        ]
        label = reduction_label(self.task)
        lowerer = Lowerer(s, at, body, vector=index, label=label, counts_vectors=True)
        # Reading the words fills `_ahead` and `_after` (`_hold`); what is in `own.block` is
        # the arithmetic of the turn.
        own = replace(lowerer, at={**at, index: place}, block=[])
        rights = [*self._rights(own, columns, (0, 1))]
        self._take(own, rights, (0, 1))
        body += [*self._ahead, t.BARRIER, *self._fill(lowerer, index, first), t.BARRIER]
        # The condition is around the multiplication alone: all lanes must reach the barriers.
        body += [t.If(place < end, tuple(own.block)), *self._after]
        self.body.append(t.count_up(first.name, 0, end, step, *body))

    def _hold(self, inner: Lowerer, name: str, reads: Reads) -> t.Ident:
        """Read before the first turn, and in each turn for the next one."""
        s, (index,) = self.builder, self.reduce.indices

        def at(place: t.Expr, block: list[t.Stmt]) -> t.Expr:
            return reads(replace(inner, at={**inner.at, index: place}, block=block))

        held, ahead = (t.Ident(s.name(f"{x}{name}", "turn")) for x in ("", "next_"))
        self.body.append(t.Var(held.name, at(self._begin, self.body)))
        self._ahead.append(t.Let(ahead.name, at(self._next, self._ahead)))
        self._after.append(t.Assign(held, ahead))
        return held

    def _fill(self, lowerer: Lowerer, index: Index, first: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that copy the rows' vectors of a turn to workgroup memory."""
        s, run = self.builder, self.width // LANES
        turns = run // self.shape.across
        for number in range(turns):
            which = suffix((number, turns))
            vector, place = (
                t.Ident(s.name(f"{name}{which}", "turn")) for name in ("vector", "at")
            )
            yield t.Let(vector.name, s.lane + number * self.shape.lanes)
            yield t.Let(place.name, first + vector * LANES)
            there = replace(lowerer, at={**lowerer.at, index: place}, block=[])
            for row, value in enumerate(self.block.lefts(there)):
                to = self._shared_at(row, vector % run, vector // run)
                wide = there.widen(value, self.reduce.type)
                there.block.append(t.Assign(to, wide))
            if self.statistics is not None:
                rows = self.block.at_rows(there)
                self.statistics.take(rows, (number, turns))
            yield t.If(place < s.extent(index.extent), tuple(there.block))

    @property
    def _statistic_groups(self) -> LaneGroups:
        """All lanes, as each of them copies, and adds, a part of the rows."""
        groups = self._groups
        return LaneGroups(groups.lanes, 1, groups.room)

    def _lefts(self, inner: Lowerer, shift: tuple[int, int]) -> Iterator[list[Value]]:
        count = self.width // LANES
        for row in range(self.shape.rows):
            yield [
                self._left(
                    inner,
                    Value(self._shared_at(row, t.u32(n), self._along), wide=True),
                    (row, self.shape.rows),
                    shift,
                    (n, count),
                )
                for n in range(count)
            ]

    def _shared_at(self, row: int, number: t.Expr, lane: t.Expr) -> t.Expr:
        """Return the place of vector `number` of a lane's run, in the array of rows."""
        run = self.width // LANES
        return self.shared[(number + row * run) * _stride(self.shape) + lane]
