"""The passes of a radix sort: eight bits of the key at a time, the lowest first.

A block is some consecutive tiles of terms, and has a workgroup.  A pass is three dispatches:

    1. count    counts[digit][block]: how often a digit occurs in a block
    2. scan     counts[digit][block]: how often it occurs in the blocks before
                totals[digit]: how often it occurs at all
    3. place    each term to its place, behind the terms with lower digits, and the terms
                with its own digit that come before it

The third dispatch sorts tiles in workgroup memory before it stores their terms, so that the
terms of a digit are stored side by side: of 2^26 keys on an H200, a pass that stored each term
alone took 2.1 ms.  Terms with equal keys keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.types import Scalar
from kerngen.plan import size as host
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.positions import linear_group
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import to_wgsl
from kerngen.schedule.sort.tile import (
    DIGIT_BITS,
    DIGITS,
    EACH,
    TILE,
    TileSort,
    sums_before,
    written_out,
)
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

MOST_ROUNDS: Final = 8
"""The most tiles of a block, one for each round of its loop.

Blocks have as few tiles as leave 256 blocks or less, as 256 lanes then scan the counts of a
digit in one turn; with 2^22 terms or more they have eight.
"""

FEW_BLOCKS: Final = 8
"""Up to this many blocks, each adds up the counts of the blocks before by itself.

The dispatch that it saves takes 6 us on an H200, as long as the rest of a pass over 8,192
terms.
"""

Read = Callable[[ShaderBuilder, list[t.Stmt], t.Expr, int], t.Expr]
"""Returns a word of a term, given the term's number and the word's; may add statements."""

Key = Callable[[ShaderBuilder, list[t.Stmt], t.Expr], t.Expr]
"""Returns the key of a term as a u32, given its first word; may add statements."""

Write = Callable[[ShaderBuilder, t.Expr, int, t.Expr], tuple[t.Stmt, ...]]
"""Returns the store of a word at a place, given the place, the word's number and its value."""


@final
@dataclass(frozen=True)
class SortItems:
    """The terms that a pass sorts: `count` of them, of `words` 32-bit words each.

    - `read`, `key`, `write`: functions that return the WGSL of a word's load, of the key, and
      of the store of a word at its place
    - `variant`: a part of the name of a placing shader; it differs where `read` or `write` does
    - `key_variant`: the same for counting shaders, which read the first word alone
    """

    task: Task
    count: host.Size
    words: int
    read: Read
    key: Key
    write: Write
    variant: str = ""
    key_variant: str = ""

    @property
    def rounds(self) -> host.Size:
        """The number of tiles in a block: one for each 2^19 terms of the sort, from 1 to 8."""
        needed = host.ceil_div(self.count, TILE * DIGITS)
        return host.maximum(host.minimum(needed, MOST_ROUNDS), 1)

    @property
    def blocks(self) -> host.Size:
        """The number of blocks, and so of workgroups that count or place."""
        return host.ceil_div(self.count, self.rounds * TILE)

    @property
    def are_few(self) -> host.Guard:
        """Guard: blocks are so few that each sums the counts of all blocks before it itself.

        The dispatch that scans the counts is then left out.
        """
        return host.compare("<=", self.blocks, FEW_BLOCKS)

    def digit(self, shader: ShaderBuilder) -> _Digit:
        """Return the function that builds the digit of a key, by which a pass sorts."""
        return _Digit(self, shader, shader.override("SHIFT", 0))


@final
@dataclass(frozen=True)
class _Digit:
    """Returns the digit of a term by which a pass sorts: `(key >> SHIFT) & 255u`.

    `by` is `SHIFT`, a constant of the pipeline, so that passes share their shaders.
    """

    terms: SortItems
    shader: ShaderBuilder
    by: t.Expr

    def __call__(self, block: list[t.Stmt], word: t.Expr) -> t.Expr:
        key = self.terms.key(self.shader, block, word)
        return t.Binary("&", t.Binary(">>", key, self.by), t.u32(DIGITS - 1))


def sort_passes(
    terms_of: Callable[[int], SortItems],
    sides: tuple[Sequence[str], Sequence[str]],
    count: int,
    *,
    begins_back: bool = False,
) -> Iterator[DispatchShader]:
    """Yield the dispatches of `count` passes: three for each eight bits of the keys.

    - `terms_of`: returns the items of a pass, given its number
    - `sides`: two sets of buffers; terms are moved from the first set to the second, then back;
      with `begins_back`, pass 0 moves them from the second to the first

    Shaders name the buffers as for a move from the first to the second; for the other direction
    the same shaders get exchanged bindings.
    """
    there, back = sides
    turned = dict(zip((*there, *back), (*back, *there), strict=True))
    for number in range(count):
        terms, shift = terms_of(number), number * DIGIT_BITS
        # Passes read in turn from the one side and the other.
        names = turned if number % 2 != begins_back else {}
        name = terms.task.scratch_name
        names = {name(own): name(other) for own, other in names.items()}
        yield renamed(counting(terms, shift), names)
        yield scanning(terms)
        yield renamed(placing(terms, shift), names)


def renamed(shader: DispatchShader, names: Mapping[str, str]) -> DispatchShader:
    """Return a shader with other buffers bound: `names` maps names to those of the others."""
    bindings = (
        replace(binding, name=names.get(binding.name, binding.name))
        for binding in shader.bindings
    )
    return replace(shader, bindings=tuple(bindings))


def count_scratch(terms: SortItems) -> tuple[Scratch, ...]:
    """Return the buffers of the digit counts: `counts` for each block, `totals` for all."""
    name = terms.task.scratch_name
    return (
        Scratch(name("counts"), terms.blocks * DIGITS),
        Scratch(name("totals"), host.Literal(DIGITS)),
    )


def counting(terms: SortItems, shift: int) -> DispatchShader:
    """Return the first shader of a pass: it counts the digits of each block.

    The digit of a key is its eight bits from bit `shift` on.
    """
    key = counting, terms.key_variant
    return _shifted(terms.task.once(key, lambda: _counting(terms)), shift)


def _shifted(shader: DispatchShader, shift: int) -> DispatchShader:
    """Return a shader for digits from a bit on: all its constants, `SHIFT`, are that bit."""
    constants = tuple((name, shift) for name, _ in shader.constants)
    return replace(shader, constants=constants)


def _counting(terms: SortItems) -> DispatchShader:
    """Write the shader that counts digits.

    In WGSL:

        atomicStore(&own[lane], 0u);                // a counter for each of 256 digits
        workgroupBarrier();
        for (var round_ = 0u; round_ < rounds; round_++) {
            ...                                     // for each of the lane's eight terms:
            atomicAdd(&own[(words[0u] >> SHIFT) & 255u], 1u);
        }
        workgroupBarrier();
        counts[lane * blocks + block] = atomicLoad(&own[lane]);
    """
    shader = ShaderBuilder(terms.task, {})
    counts = shader.scratch("counts", Scalar.U32, written=True)
    own = shader.workgroup_array("own", f"array<atomic<u32>, {DIGITS}>", 4 * DIGITS)
    block, rounds, round_ = (
        t.Ident(shader.fresh(name)) for name in ("block", "rounds", "round")
    )
    place = t.Unary("&", own[shader.lane])
    blocks = to_wgsl(terms.blocks, shader)
    first = (block * rounds + round_) * TILE + shader.lane
    body: list[t.Stmt] = [
        t.Let(block.name, linear_group(shader)),
        t.Let(rounds.name, to_wgsl(terms.rounds, shader)),
        t.Evaluate(t.call("atomicStore", place, t.ZERO)),
        t.BARRIER,
        t.count_up(round_.name, 0, rounds, 1, *_count(terms, shader, own, first)),
        t.BARRIER,
        # By digit, then block: the next dispatch sums the counts of one digit.
        t.If(
            block < blocks,
            (counts.store(shader.lane * blocks + block, t.call("atomicLoad", place)),),
        ),
    ]
    return shader.finish(
        body,
        groups=terms.blocks,
        workgroup_size=DIGITS,
        summary="sort, first of three dispatches: count the digits of each block.",
        variant=f"sort_count{terms.key_variant}",
        terms=terms.count + terms.rounds * TILE,
        trips=terms.rounds * EACH,
    )


def _count(
    terms: SortItems, shader: ShaderBuilder, own: t.Expr, first: t.Expr
) -> Iterator[t.Stmt]:
    """Yield the statements that count a tile's digits.

    All reads come first, clamped to the last term, so that they are on their way at once.
    """
    count, digit = to_wgsl(terms.count, shader), terms.digit(shader)
    words = t.Ident(shader.fresh("words"))

    def read(number: t.Expr) -> Iterator[t.Stmt]:
        block = list[t.Stmt]()
        place = t.call("min", first + number * DIGITS, count - 1)
        word = terms.read(shader, block, place, 0)
        yield from (*block, t.Assign(words[number], word))

    def add(number: t.Expr) -> Iterator[t.Stmt]:
        block = list[t.Stmt]()
        counter = t.Unary("&", own[digit(block, words[number])])
        block.append(t.Evaluate(t.call("atomicAdd", counter, t.ONE)))
        yield t.If(first + number * DIGITS < count, tuple(block))

    yield t.Var(words.name, type=f"array<u32, {EACH}>")
    yield from written_out(EACH, "term", read)
    yield from written_out(EACH, "term", add)


def scanning(terms: SortItems) -> DispatchShader:
    """Return the second shader of a pass: it turns counts into the sums over earlier blocks."""
    return terms.task.once(scanning, lambda: _scanning(terms))


def _scanning(terms: SortItems) -> DispatchShader:
    """Write the shader that scans counts: a workgroup for each digit, 256 blocks a turn.

    In WGSL:

        let found = sums_before(count, lane);
        counts[digit * blocks + block] = before + found.x;
        before += found.y;
    """
    shader = ShaderBuilder(terms.task, {})
    counts = shader.scratch("counts", Scalar.U32, written=True)
    totals = shader.scratch("totals", Scalar.U32, written=True)
    digit, blocks, before, first, block, count = (
        t.Ident(shader.fresh(name))
        for name in ("digit", "blocks", "before", "first", "block", "count")
    )
    found = t.Ident(shader.fresh("found"))
    loop: tuple[t.Stmt, ...] = (
        t.Let(block.name, first + shader.lane),
        t.Var(count.name, t.ZERO),
        t.If(block < blocks, (t.Assign(count, counts.load(digit * blocks + block)),)),
        t.Let(found.name, sums_before(shader)(count)),
        t.If(
            block < blocks,
            (counts.store(digit * blocks + block, before + found.member("x")),),
        ),
        t.Assign(before, found.member("y"), "+="),
        # The next turn overwrites the sums in workgroup memory.
        t.BARRIER,
    )
    body: list[t.Stmt] = [
        t.Let(digit.name, linear_group(shader)),
        t.Let(blocks.name, to_wgsl(terms.blocks, shader)),
        t.Var(before.name, t.ZERO),
        t.count_up(first.name, 0, blocks, DIGITS, *loop),
        t.If(shader.lane.equals(0), (totals.store(digit, before),)),
    ]
    return shader.finish(
        body,
        # Where blocks are few, each adds up the counts itself: a dispatch of 0 workgroups
        # is not recorded.
        groups=host.select(terms.are_few, 0, DIGITS),
        workgroup_size=DIGITS,
        summary="sort, second of three dispatches: how many terms of a digit are in blocks before.",
        variant="sort_scan",
        trips=host.ceil_div(terms.blocks, DIGITS),
    )


def placing(terms: SortItems, shift: int) -> DispatchShader:
    """Return the third shader of a pass: it moves each term to its place by its digit.

    The digit of a key is its eight bits from bit `shift` on.
    """
    key = placing, terms.variant
    written = terms.task.once(
        key, lambda: _Placing(terms, ShaderBuilder(terms.task, {})).shader()
    )
    return _shifted(written, shift)


@final
class _Placing:
    """Writes the shader of `placing`, with two arrays of 256 digits in workgroup memory.

    `next[digit]` is the place of the digit's next term in the result.  In a sorted tile,
    the terms of a digit have consecutive slots, so that `base[digit]`, which is `next`
    less the digit's first slot, gives the place of each of them:

        slot       0  1  2  3  4  5            next[0] = 40, next[2] = 70
        digit      0  0  0  2  2  2            base[0] = 40 - 0, base[2] = 70 - 3
        place      40 41 42 70 71 72           base[digit] + slot
    """

    def __init__(self, terms: SortItems, shader: ShaderBuilder) -> None:
        """Declare the workgroup memory, and name the variables of a round."""
        self._terms, self._shader = terms, shader
        self._digit = terms.digit(shader)
        self._tile = TileSort(shader, terms.words, self._digit)
        array = f"array<u32, {DIGITS}>"
        self._next = shader.workgroup_array("next", array, 4 * DIGITS)
        self._base = shader.workgroup_array("base", array, 4 * DIGITS)
        self._first, self._many = (
            t.Ident(shader.fresh(name)) for name in ("first", "many")
        )

    def shader(self) -> DispatchShader:
        """Return the shader: it finds each digit's first place, then moves tile after tile."""
        terms, shader = self._terms, self._shader
        block, blocks, round_, rounds = (
            t.Ident(shader.fresh(name))
            for name in ("block", "blocks", "round", "rounds")
        )
        first = t.Let(self._first.name, (block * rounds + round_) * TILE)
        body: list[t.Stmt] = [
            t.Let(block.name, linear_group(shader)),
            t.Let(blocks.name, to_wgsl(terms.blocks, shader)),
            t.If(t.Binary(">=", block, blocks), (t.Return(),)),
            *self._begin(block, blocks),
            t.Let(rounds.name, to_wgsl(terms.rounds, shader)),
            t.count_up(round_.name, 0, rounds, 1, first, *self._round()),
        ]
        return shader.finish(
            body,
            groups=terms.blocks,
            workgroup_size=DIGITS,
            summary="sort, last of three dispatches: move each term behind those before it.",
            variant=f"sort_place{terms.variant}",
            terms=terms.count + terms.rounds * TILE,
            trips=terms.rounds,
        )

    def _begin(self, block: t.Expr, blocks: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that set `next`: each lane that of its digit.

        In WGSL:

            var before = 0u;                  // terms of the digit in blocks before
            var total = 0u;                   // terms of the digit in all blocks
            ...                               // counted here, or read of the second dispatch
            next[lane] = sums_before(total, lane).x + before;
        """
        shader, lane = self._shader, self._shader.lane
        counts, totals = (
            shader.scratch(name, Scalar.U32, written=False)
            for name in ("counts", "totals")
        )
        before, total, which, few = (
            t.Ident(shader.fresh(name)) for name in ("before", "total", "which", "few")
        )
        count = counts.load(lane * blocks + which)
        added = (
            t.Assign(total, count, "+="),
            t.If(which < block, (t.Assign(before, count, "+="),)),
        )
        scanned = (
            t.Assign(before, counts.load(lane * blocks + block)),
            t.Assign(total, totals.load(lane)),
        )
        yield t.Var(before.name, t.ZERO)
        yield t.Var(total.name, t.ZERO)
        yield t.Let(few.name, t.Binary("<=", blocks, t.u32(FEW_BLOCKS)))
        end = t.call("select", t.ZERO, blocks, few)
        yield t.count_up(which.name, 0, end, 1, *added)
        yield t.If(t.Unary("!", few), scanned)
        lesser = self._tile.sums_before(total).member("x")
        yield t.Assign(self._next[lane], lesser + before)

    def _round(self) -> Iterator[t.Stmt]:
        """Yield the statements that move the terms of a tile: read, sort, write."""
        tile, first, shader = self._tile, self._first, self._shader
        count = to_wgsl(self._terms.count, shader)
        # The last block may have rounds without terms: there `many` is 0.
        left = t.call("max", count, first) - first
        last = t.Ident(self._shader.fresh("last"))
        yield t.Let(self._many.name, t.call("min", left, t.u32(TILE)))
        yield from tile.declare()
        yield t.Let(last.name, count - 1)
        yield from tile.each(lambda number: self._read(number, last))
        yield from tile.sort(self._many)
        # `base` of all digits in the tile, before any lane uses it.
        yield from tile.each(lambda number: [self._if_begins(number)])
        yield t.BARRIER
        yield from tile.each(
            lambda number: [t.If(self._is_term(number), tuple(self._write(number)))]
        )

    def _is_term(self, number: t.Expr) -> t.Expr:
        return self._tile.slot(number) < self._many

    def _read(self, number: t.Expr, last: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that read a term's words; past the end, those of the last term.

        There is no branch between a lane's reads, so that all are on their way at once.
        """
        place = t.call("min", self._first + self._tile.slot(number), last)
        for which, word in enumerate(self._tile.words):
            block: list[t.Stmt] = []
            value = self._terms.read(self._shader, block, place, which)
            yield from block
            yield t.Assign(word[number], value)

    def _if_begins(self, number: t.Expr) -> t.Stmt:
        """Return the statement that sets `base` of a digit, where a term is its first one.

        In WGSL:

            if (slot == 0u || own_digit != digit_before) {
                base[own_digit] = next[own_digit] - slot;
            }
        """
        slot, block = self._tile.slot(number), list[t.Stmt]()
        digit, before = (
            t.Ident(self._shader.fresh(name)) for name in ("own_digit", "digit_before")
        )
        own = self._digit(block, self._tile.words[0][number])
        block.append(t.Let(digit.name, own))
        last = self._tile.at(t.call("max", slot, 1) - 1)
        other = self._digit(block, last)
        block.append(t.Let(before.name, other))
        begins = t.any_of(slot.equals(0), t.Binary("!=", digit, before))
        keep = t.Assign(self._base[digit], self._next[digit] - slot)
        block.append(t.If(begins, (keep,)))
        return t.If(self._is_term(number), tuple(block))

    def _write(self, number: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that write a term to its place.

        The last term of a digit in the tile sets `next` for the next tile:

            let to = base[own_digit] + slot;
            moved[to] = word[k];
            if (slot + 1u == many || own_digit != digit_after) { next[own_digit] = to + 1u; }
        """
        shader, slot, block = self._shader, self._tile.slot(number), list[t.Stmt]()
        digit, place, after = (
            t.Ident(shader.fresh(name)) for name in ("own_digit", "to", "digit_after")
        )
        own = self._digit(block, self._tile.words[0][number])
        block.append(t.Let(digit.name, own))
        block.append(t.Let(place.name, self._base[digit] + slot))
        for which, word in enumerate(self._tile.words):
            block += self._terms.write(shader, place, which, word[number])
        following = self._tile.at(t.call("min", slot + 1, t.u32(TILE - 1)))
        other = self._digit(block, following)
        block.append(t.Let(after.name, other))
        ends = t.any_of((slot + 1).equals(self._many), t.Binary("!=", digit, after))
        block.append(t.If(ends, (t.Assign(self._next[digit], place + 1),)))
        yield from block
