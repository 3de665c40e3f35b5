"""Sort few terms by bin in one dispatch: each term is compared with every other one.

A term's place is the number of terms with a lesser bin, plus the number of earlier terms
with the same bin.  On an H200 a dispatch takes about 5 us, whatever it does, and a radix
sort has seven for 8,192 terms; to compare as many with each other takes 10 us.

A workgroup has 64 terms.  It loads the bins of 2,048 terms at a time, a tile, into workgroup
memory.  A lane compares two of the 64 terms with an eighth of the tile, so that eight groups
of 32 lanes share the work:

    lane     0      1     ...  31      | 32     ...      | ...
    terms    0, 32  1, 33 ...  31, 63  | 0, 32  ...      | ...      of the workgroup's 64
    others   0 .. 255                  | 256 .. 511      | ...      of the tile's 2,048
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from kerngen.ir.analysis.reads import holds_reduce
from kerngen.ir.types import Scalar
from kerngen.plan.size import ceil_div, maximum
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.values import COMPONENTS, LANES
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.scatter.sort import SECOND, moves_values
from kerngen.schedule.sizes import ceil_division, to_wgsl
from kerngen.shader import tree as t

FEW: Final = 8192
"""The most terms.  The work grows with their square: for 16,384 a radix sort is as fast."""

GROUP: Final = 256
"""The lanes of a workgroup."""

SIDE: Final = 32
"""The lanes that have all terms of a workgroup; each other 32 have the same ones."""

EACH: Final = 2
"""How many terms a lane has: the one of its number, and that 32 behind."""

OWN: Final = SIDE * EACH
"""How many terms a workgroup has: 64."""

SLICES: Final = GROUP // SIDE
"""Into how many slices a tile is cut, one for each 32 lanes: 8."""

VECTORS: Final = 512
"""How many vectors of four bins a tile has, in 8 KiB of workgroup memory."""

TILE: Final = VECTORS * LANES
"""How many terms a tile has: 2,048."""

NOWHERE: Final = t.Literal("0xffffffffu")
"""The bin of slots behind the last term: it is above all others, and so counts for none."""


def compares(found: Scatter) -> bool:
    """Whether each workgroup may compute the bins of all terms: no key has a reduction."""
    keys = (*found.guards, *(key.value for key in found.keys))
    return not any(map(holds_reduce, keys))


def sorting_few(found: Scatter) -> DispatchShader:
    """Return the shader that sorts the terms, and marks all bins as empty."""
    return found.task.once(sorting_few, lambda: _Few(found).shader())


@final
class _Few:
    """Writes the shader.

    - `_first`: the number of the workgroup's first term
    - `_side`, `_slice`: the lane's number among 32, and the number of its slice of a tile
    - `_start`: the number of a tile's first term
    - `_terms`, `_own`, `_before`: of each of the lane's two terms the number, the bin, and
      how many of the other terms come before it
    """

    def __init__(self, found: Scatter) -> None:
        """Start the shader, declare the workgroup memory, and name the variables."""
        self._found = found
        self._shader = shader = ShaderBuilder(found.task, {})
        array = f"array<vec4u, {VECTORS}>"
        self._tile = shader.workgroup_array("tile", array, 4 * TILE)
        size = SLICES * OWN
        self._counts = shader.workgroup_array("counts", f"array<u32, {size}>", 4 * size)
        self._count = to_wgsl(found.term_count, shader)
        self._first, self._side, self._slice, self._start = map(
            self._fresh, ("first", "side", "slice", "start")
        )
        self._terms = [self._fresh(f"term{n}") for n in range(EACH)]
        self._own = [self._fresh(f"own{n}") for n in range(EACH)]
        self._before = [self._fresh(f"before{n}") for n in range(EACH)]

    def _fresh(self, name: str) -> t.Ident:
        return t.Ident(self._shader.fresh(name))

    def shader(self) -> DispatchShader:
        """Return the shader: count in a loop over tiles, then join the counts and move."""
        found, shader = self._found, self._shader
        # The workgroups without terms only mark bins: with no terms at all, there is one.
        body: list[t.Stmt] = [
            t.Let(self._first.name, linear_group(shader) * OWN),
            *self._mark(),
            t.If(t.Binary(">=", self._first, self._count), (t.Return(),)),
            t.Let(self._side.name, shader.lane % SIDE),
            t.Let(self._slice.name, shader.lane // SIDE),
        ]
        pairs = enumerate(zip(self._terms, self._own, self._before, strict=True))
        for number, (term, own, before) in pairs:
            body.append(t.Let(term.name, self._first + self._side + number * SIDE))
            last = t.call("min", term, t.Binary("-", self._count, t.ONE))
            body += [t.Let(own.name, self._bin(body, last)), t.Var(before.name, t.ZERO)]
        body.append(
            t.count_up(self._start.name, 0, self._count, TILE, *self._take_tile())
        )
        body += self._place()
        return shader.finish(
            body,
            groups=maximum(ceil_div(found.term_count, OWN), 1),
            workgroup_size=GROUP,
            summary="the terms in the order of their bins; no bin is filled.",
            variant="sort_few",
            terms=found.term_count,
            trips=ceil_div(found.bin_count, GROUP)
            + ceil_div(found.term_count, TILE) * (VECTORS // SLICES + LANES),
        )

    def _mark(self) -> Iterator[t.Stmt]:
        """Yield the loop that marks all bins as empty; the workgroups share them."""
        shader, at = self._shader, self._fresh("bin")
        filled = shader.scratch("filled", Scalar.U32, written=True)
        groups = t.call("max", ceil_division(self._count, t.u32(OWN)), 1)
        yield t.count_up(
            at.name,
            self._first * (GROUP // OWN) + shader.lane,
            shader.size(self._found.bins),
            groups * GROUP,
            filled.store(at, t.ZERO),
        )

    def _bin(self, block: list[t.Stmt], term: t.Expr) -> t.Expr:
        """Return the number of a term's bin, or the number of bins if it counts nowhere.

        In WGSL:

            let place = term;
            var bin: u32;
            {  // The bin.
                let s = segment[place];
                bin = select(u.segments_length, s, s < u.segments_length);
            }
        """
        found, shader, place = self._found, self._shader, self._fresh("place")
        block.append(t.Let(place.name, term))
        inner = Lowerer(shader, {}, [], label=reduction_label(found.task))
        inner.at.update(unravel(shader, inner.block, found.terms, place))
        counts, number = found.lower_key(inner)
        bin_ = self._fresh("bin")
        chosen = t.call("select", shader.size(found.bins), number, counts)
        body = (*inner.block, t.Assign(bin_, chosen))
        block += [t.Var(bin_.name, type="u32"), t.Block("The bin.", body)]
        return bin_

    def _take_tile(self) -> Iterator[t.Stmt]:
        """Yield the statements that load a tile and compare the lane's terms with a slice."""
        shader, slot, at = self._shader, self._fresh("slot"), self._fresh("at")
        block: list[t.Stmt] = [t.Let(at.name, self._start + slot * LANES)]
        last = t.Binary("-", self._count, t.ONE)
        # There is no branch between the reads, so that all are on their way at once.
        bins = [
            self._bin(block, t.call("min", at + number, last))
            for number in range(LANES)
        ]
        numbers = t.call("vec4u", at) + t.call("vec4u", *range(LANES))
        is_term = numbers < t.call("vec4u", self._count)
        nowhere = t.call("vec4u", NOWHERE)
        vector = t.call("select", nowhere, t.call("vec4u", *bins), is_term)
        block.append(t.Assign(self._tile[slot], vector))
        yield t.count_up(slot.name, shader.lane, t.u32(VECTORS), GROUP, *block)
        yield t.BARRIER
        # A tile is all before the workgroup's terms, all behind them, or has them: only
        # then are the terms' numbers compared.
        is_own = self._start.equals(self._first // TILE * TILE)
        yield t.If(is_own, (self._compare(slot, is_own=True),))
        yield t.If(t.Unary("!", is_own), (self._compare(slot, is_own=False),))
        yield t.BARRIER

    def _compare(self, slot: t.Ident, *, is_own: bool) -> t.Stmt:
        """Return the loop that counts the terms of a slice that come before the lane's.

        Terms with a lesser bin do, and earlier terms with the same bin: `bins < own + 1`
        for earlier terms, `bins < own` for others.  In WGSL, where the tile has not the
        workgroup's own terms:

            let less = select(vec4u(0u), vec4u(1u), bins < vec4u(own0) + earlier);
            before0 += less.x + less.y + (less.z + less.w);
        """
        body, bins, numbers = (
            list[t.Stmt](),
            self._fresh("bins"),
            self._fresh("numbers"),
        )
        body.append(t.Let(bins.name, self._tile[slot]))
        if is_own:
            begin = t.call("vec4u", self._start + slot * LANES)
            offsets = t.call("vec4u", *range(LANES))
            body.append(t.Let(numbers.name, begin + offsets))
        pairs = zip(self._terms, self._own, self._before, strict=True)
        for term, own, before in pairs:
            # less = select(0, 1, bins < own + select(0, 1, is earlier))
            less = self._fresh("less")
            each = numbers < t.call("vec4u", term)
            earlier = each if is_own else self._start < term
            limit = t.call("vec4u", own) + _ones(earlier)
            body.append(t.Let(less.name, _ones(bins < limit)))
            x, y, z, w = (t.Member(less, component) for component in COMPONENTS)
            body.append(t.Assign(before, x + y + (z + w), "+="))
        eighth = VECTORS // SLICES
        begin = self._slice * eighth
        return t.count_up(slot.name, begin, begin + eighth, 1, *body)

    def _place(self) -> Iterator[t.Stmt]:
        """Yield the statements that add up a term's eight counts, and move it to its place.

        The first 64 lanes do so, for a term each.
        """
        shader, found = self._shader, self._found
        for number, before in enumerate(self._before):
            at = self._slice * OWN + self._side + number * SIDE
            yield t.Assign(self._counts[at], before)
        yield t.BARRIER
        # The sum of the counts of all slices is the term's place.
        place, term, block = self._fresh("to"), self._fresh("term"), list[t.Stmt]()
        total = self._counts[shader.lane]
        for number in range(1, SLICES):
            total = total + self._counts[shader.lane + number * OWN]
        keys, items = (
            shader.scratch(name, Scalar.U32, written=True) for name in SECOND
        )
        block.append(t.Let(place.name, total))
        block.append(keys.store(place, self._bin(block, term)))
        value: t.Expr = term
        if moves_values(found):
            own = Lowerer(shader, {}, block, label=reduction_label(found.task))
            own.at.update(unravel(shader, block, found.terms, term))
            value = t.call("bitcast<u32>", own.lower(found.body).expr)
        block.append(items.store(place, value))
        yield t.Let(term.name, self._first + shader.lane)
        is_term = t.all_of(shader.lane < OWN, term < self._count)
        yield t.If(is_term, tuple(block))


def _ones(conditions: t.Expr) -> t.Expr:
    """Return a vector with 1 for each condition that holds, else 0."""
    return t.call("select", t.call("vec4u", 0), t.call("vec4u", 1), conditions)
