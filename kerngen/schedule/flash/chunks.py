"""Gradients of scores that are stored a chunk at a time: one pass computes them for two.

    dk[j, p] = scale * sum[i] dscore[i, j] * q[i, p];
    dq[i, p] = scale * sum[j] dscore[i, j] * k[j, p];

The pass over the queries that sums dk and dv (the *maker*) has every `dscore[i, j]` in
registers.  It stores those of a chunk: some queries of some heads.  dq of these queries is
then a plain product (the *taker*), and neither the scores nor the gradients of the weights
are computed for it again: that makes five products instead of seven.

The next chunk takes the same memory.  The maker reads the dk and dv of the queries so far and
adds to them, so that a chunk has workgroups for all keys: a chunk of fewer heads with all of
their queries would have too few workgroups for a device.  The dispatches of a call:

    statistics of rows (`row_numbers`)
    count = 0
    for each chunk:   maker (dscore, dk, dv)   taker (dq)   count += 1

One invocation counts the chunks, in a dispatch of its own; the count is in the tensor
`row_numbers`, behind the statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import factors_of, walk, with_locals
from kerngen.plan.size import (
    Apply,
    Literal,
    Size,
    add,
    ceil_div,
    maximum,
    minimum,
    multiply,
    product_of,
)
from kerngen.plan.tree import Scratch
from kerngen.schedule.flash.attention import SUM
from kerngen.schedule.flash.attention_sums import (
    AttentionSums,
    SumPass,
    TileSum,
    product,
)
from kerngen.schedule.flash.key_bounds import KeyBounds, mask_of
from kerngen.schedule.flash.row_numbers import ZERO
from kerngen.schedule.flash.tiling import FlashTiling
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task

LEAST_STORED: Final = 1 << 25
MOST_STORED: Final = 1 << 27
"""The bounds of a chunk, in elements of f32: 128 MiB, which it may always take, as WebGPU
promises a binding of that size; and 512 MiB, which it never exceeds."""

FOR_EACH: Final = 4
"""How many elements a chunk may have for each element of q, k, v and dy.

That is about twice the bytes of these tensors and of the results.
"""

STEP: Final = 128
LINES: Final = 64
"""What the numbers of queries and of keys in memory are multiples of.

The sizes of all default tiles divide them, so that the chunks of these are alike.
"""

IS_FIRST: Final = ir.LocalValue("is of the first chunk", Scalar.BOOL)
"""Whether a sum is of the first queries of its head: nothing has been stored before."""


@final
@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks in which gradients of scores are stored, and the passes that use them.

    - `name`: the buffer of a chunk
    - `numbers`: the tensor of the statistics of rows, with the current chunk's number behind
      them
    - `most`: how many queries of each head a chunk has at most
    - `step`, `tile_keys`: the numbers of queries and of keys in a chunk are multiples of these,
      themselves multiples of what a workgroup handles at a time
    - `maker`: the pass that computes the gradients, as the weights of its sum number `number`
    - `taker`: the pass that reads them, for dq
    """

    name: str
    numbers: ir.Tensor
    most: int
    step: int
    tile_keys: int
    maker: SumPass
    number: int
    taker: SumPass

    @property
    def row(self) -> ir.Index:
        """The index of queries."""
        return self.taker.tiles.row

    @property
    def key(self) -> ir.Index:
        """The index of keys."""
        return self.taker.tiles.key

    @property
    def sum(self) -> TileSum:
        """The sum that reads the stored gradients: dq."""
        return self.taker.sums[0]

    @property
    def bound(self) -> Size:
        """The most elements that a chunk may have: in proportion to the tensors of the call.

        That is rows * width * 4, where the rows are the queries and keys of all heads, and the
        width is the number of columns of q and dy; at least `LEAST_STORED`, at most
        `MOST_STORED`.
        """
        batch, tiles = domain_size(self.taker.tiles.batch), self.taker.tiles
        rows = multiply(
            batch, add(extent_size(tiles.row.extent), extent_size(tiles.key.extent))
        )
        width = add(*(extent_size(x.column.extent) for x in self.maker.sums))
        # Shaders compute it, too: the product has to stay below 2^32.
        many = Apply("/", (Literal(MOST_STORED // FOR_EACH), maximum(width, 1)))
        elements = multiply(minimum(rows, add(many, 1)), width, FOR_EACH)
        return minimum(maximum(elements, LEAST_STORED), MOST_STORED)

    @property
    def lines(self) -> Size:
        """How many lines a head has: one per key, rounded up to a multiple of `tile_keys`."""
        keys = maximum(extent_size(self.key.extent), 1)
        return multiply(ceil_div(keys, self.tile_keys), self.tile_keys)

    @property
    def queries(self) -> Size:
        """How many queries of each head a chunk has: all, or what `bound` and `most` admit."""
        fitting = Apply("/", (self.bound, multiply(self.lines, self.step)))
        rows = minimum(ceil_div(self._rows, self.step), self.most // self.step)
        return multiply(minimum(rows, maximum(fitting, 1)), self.step)

    @property
    def heads(self) -> Size:
        """How many heads a chunk has: all heads are cut into parts of this many."""
        return ceil_div(domain_size(self.taker.tiles.batch), maximum(self._parts, 1))

    @property
    def rounds(self) -> Size:
        """How many chunks the queries of one head are cut into, which follow each other."""
        return ceil_div(self._rows, self.queries)

    @property
    def count(self) -> Size:
        """The number of chunks: `rounds` for each part that the heads are cut into."""
        return multiply(self._parts, self.rounds)

    @property
    def scratch(self) -> Scratch:
        """The buffer that has one chunk at a time."""
        return Scratch(self.name, multiply(self.heads, self.lines, self.queries))

    @property
    def counter(self) -> Size:
        """Where the current chunk's number is in the tensor `numbers`: behind the rest."""
        return product_of(map(extent_size, self.numbers.extents))

    @property
    def _rows(self) -> Size:
        """How many queries there are, or 1: dk and dv are stored where there are none."""
        return maximum(extent_size(self.row.extent), 1)

    @property
    def _parts(self) -> Size:
        """How many parts the heads are divided into, so that a chunk fits its bound."""
        most = Apply("/", (self.bound, multiply(self.lines, self.queries)))
        return ceil_div(domain_size(self.taker.tiles.batch), maximum(most, 1))


def chunks_of(task: Task, found: AttentionSums, tiling: FlashTiling) -> Chunks | str:
    """Return the chunks of the gradients `found`, or the reason why no gradients are stored.

    There must be a pass over the keys with one sum (dq), and a pass over the queries that has
    the same weights with rows and keys exchanged.
    """
    takers = [x for x in found.passes if not x.is_turned and len(x.sums) == 1]
    makers = [x for x in found.passes if x.is_turned]
    reason = "no two of its sums have the same weights"
    if found.numbers is None:
        return reason
    for taker in takers:
        for maker in makers:
            number = _shared(taker, maker)
            if number is None:
                continue
            reason = _unfit(taker, maker)
            if not reason:
                # Both passes have whole tiles of queries and of keys in a chunk.
                name = task.scratch_name("score_gradients")
                step, lines = lcm(tiling.keys, STEP), lcm(tiling.queries, LINES)
                step = tiling.keys if tiling.chunk % step else step
                tile = step, lines
                return Chunks(
                    name, found.numbers, tiling.chunk, *tile, maker, number, taker
                )
    return reason


def _shared(taker: SumPass, maker: SumPass) -> int | None:
    """Return which sum of the maker has the weights of the taker's sum; None if none has."""
    one, other = taker.tiles, maker.tiles
    alike = one.batch == other.batch and (one.row, one.key) == (other.key, other.row)
    if not alike or taker.outer or maker.outer:
        return None
    # With rows and keys exchanged, the factors of a product are exchanged, too.
    sides = [frozenset((x.left, x.right)) for x in other.products]
    own = [frozenset((x.left, x.right)) for x in one.products]
    if not set(own) <= set(sides):
        return None
    places = {product(n).name: product(sides.index(x)) for n, x in enumerate(own)}
    weight = with_locals(taker.sums[0].weight, places)
    weights = [each.weight for each in maker.sums]
    return weights.index(weight) if weight in weights else None


def _unfit(taker: SumPass, maker: SumPass) -> str:
    """Return why what a pass makes is not stored for another, or "" if it is."""
    if len(maker.tensors) + 1 > MAX_TENSORS:
        return f"with what is stored, it takes more than {MAX_TENSORS} tensors"
    if not all(_is_linear(each.finish) for each in maker.sums):
        return "what becomes of its sums is no multiple of them"
    mask = mask_of(taker.sums[0].weight)
    bounds = KeyBounds.of_mask(mask, taker.tiles.row, taker.tiles.key).bounds
    if len(bounds) > 1 or any(bound.slope != 1 or bound.is_read for bound in bounds):
        return "its mask is no plain triangle"
    return ""


def _is_linear(stage: Stage) -> bool:
    """Whether a stage stores multiples of its sum, as f32 and where it belongs."""
    for step in stage.steps:
        if not isinstance(step, Write) or isinstance(step.value, StoreAt):
            return False
        tensor = step.tensor
        if step.is_partial or tensor.is_half or tensor.element is not Scalar.F32:
            return False
        factors = list(factors_of(step.value))
        others = [each for each in factors if each != SUM]
        if len(factors) != len(others) + 1 or any(SUM in walk(x) for x in others):
            return False
    return True


def added(stage: Stage) -> Stage:
    """Return `stage`, which stores sums, so that it adds them to those of earlier chunks.

    `dk[j, p] = s` becomes `dk[j, p] = (if is_first { 0.0 } else { dk[j, p] }) + s`.
    """
    own = tuple(map(ir.IndexValue, stage.domain))
    steps: list[Write] = []
    for step in stage.steps:
        assert isinstance(step, Write), "only multiples of sums are stored"
        before = ir.Select(IS_FIRST, ZERO, ir.Load(step.tensor, own), Scalar.F32)
        value = ir.Binary("+", before, step.value, Scalar.F32)
        steps.append(replace(step, value=value))
    return replace(stage, steps=(*steps,))
