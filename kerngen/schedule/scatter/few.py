"""Sort few terms by bin in one dispatch: each is compared with each other one.

A term's place is the number of those of lesser bins, and of earlier ones of its own bin.
On an H200 a dispatch takes about 5 us, whatever it does, and a radix sort has seven for
8,192 terms; as many compared with each other take 10 us.

A workgroup has 64 terms, two to a lane.  It takes the bins of 2,048 terms at a time into
its memory, of which each 32 lanes compare their terms with an eighth:

    lane     0      1     ...  31   |  32     ...
    terms    0, 32  1, 33      31, 63  0, 32          those of the workgroup
    others   0 .. 255 of the tile   |  256 .. 511
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
from kerngen.schedule.lowering.values import COMPONENTS, LANES
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.scatter.sort import SECOND, moves_values
from kerngen.schedule.sizes import ceil_division, to_wgsl
from kerngen.shader import tree as t

FEW: Final = 8192
"""The work grows with the square: of 16,384 terms a radix sort is as fast."""

GROUP: Final = 256
SIDE: Final = 32
"""The lanes that have the workgroup's terms; as many others have the same ones."""

EACH: Final = 2
OWN: Final = SIDE * EACH
SLICES: Final = GROUP // SIDE
VECTORS: Final = 512
TILE: Final = VECTORS * LANES
NOWHERE: Final = t.Literal("0xffffffffu")


def compares(found: Scatter) -> bool:
    """Whether bins are cheap to find: each workgroup does so for all terms."""
    keys = (*found.guards, *(key.value for key in found.keys))
    return not any(map(holds_reduce, keys))


def sorting_few(found: Scatter) -> DispatchShader:
    """Return the shader that sorts the terms, and marks all bins as empty."""
    return found.task.once(sorting_few, lambda: _Few(found).shader())


@final
class _Few:
    """Writes the shader."""

    def __init__(self, found: Scatter) -> None:
        """Start the shader, and declare the workgroup's memory."""
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
        """Return the whole shader."""
        found, shader = self._found, self._shader
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
        """Yield the statements that mark all bins as empty."""
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
        """Return the number of a term's bin; that of no bin, where it counts nowhere."""
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
        """Yield the statements that compare a lane's terms with those of a tile."""
        shader, slot, at = self._shader, self._fresh("slot"), self._fresh("at")
        block: list[t.Stmt] = [t.Let(at.name, self._start + slot * LANES)]
        last = t.Binary("-", self._count, t.ONE)
        # No condition is between the reads, so that all are on their way at once.
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
        is_own = self._start.equals(self._first // TILE * TILE)
        yield t.If(is_own, (self._compare(slot, is_own=True),))
        yield t.If(t.Unary("!", is_own), (self._compare(slot, is_own=False),))
        yield t.BARRIER

    def _compare(self, slot: t.Ident, *, is_own: bool) -> t.Stmt:
        """Return the loop over an eighth of a tile: all before or behind, or `is_own`.

        Earlier terms count if their bin is not greater.
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
        """Yield the statements that add the counts of all lanes of a term, and move it."""
        shader, found = self._shader, self._found
        for number, before in enumerate(self._before):
            at = self._slice * OWN + self._side + number * SIDE
            yield t.Assign(self._counts[at], before)
        yield t.BARRIER
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
    """Return a vector with a 1 for each condition that holds."""
    return t.call("select", t.call("vec4u", 0), t.call("vec4u", 1), conditions)
