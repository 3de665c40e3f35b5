"""Sort a tile of terms by eight bits of their keys, in workgroup memory.

Each lane has `EACH` terms that follow each other.  Four bits are sorted by at a time.  A
lane counts the digits of its own terms, in 16 counters of 16 bits:

    digit d:  word d % 8, its lower half for d < 8, else its upper half

The counters lie digit by digit, and those of a digit lane by lane.  So a term's place is
what all counters before hold, with the terms of its own lane and digit before it.  A lane
changes no counter of another's, and no atomic operation is needed: terms with the same
digit stay in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, final

from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

DIGIT_BITS: Final = 8
DIGITS: Final = 1 << DIGIT_BITS
"""Also the lanes of a workgroup: each has a digit of its own."""

EACH: Final = 8
"""How many terms a lane has; a tile and the counters of its lanes take 8 KiB each."""

TILE: Final = DIGITS * EACH
COUNTERS: Final = 8
"""How many words have the counters of a lane."""

HALF: Final = 4
"""How many bits are sorted by at a time."""

Digit = Callable[[list[t.Stmt], t.Expr], t.Expr]
"""Writes what is needed to find the eight bits of a term in its first word; returns them."""


@final
class TileSort:
    """Writes the sort of a tile; each term has some 32-bit words, the first its key."""

    def __init__(self, shader: ShaderBuilder, words: int, digit: Digit) -> None:
        """Declare memory of the workgroup, and variables of the lane."""
        self._shader, self._lane, self._digit_of = shader, shader.lane, digit
        # Counters and terms are never needed at once, and share the memory.
        size = max(TILE, DIGITS * COUNTERS)
        self._shared = shader.workgroup_array("tile", f"array<u32, {size}>", 4 * size)
        self.sums_before = sums_before(shader)
        self.words = [self._array("word") for _ in range(words)]
        self._digit, self._place = self._array("digit"), self._array("slot")
        self._swizzled = shader.fresh("swizzled")
        text = f"fn {self._swizzled}(slot: u32) -> u32 {{\n    return slot ^ ((slot >> 5u) & 31u);\n}}"
        shader.declare("function swizzled", wgsl.Verbatim(text))

    def _array(self, wanted: str) -> t.Ident:
        return t.Ident(self._shader.fresh(wanted))

    def each(self, body: Callable[[t.Expr], Iterable[t.Stmt]]) -> Iterator[t.Stmt]:
        """Yield the statements of `body` for the number of each of the lane's terms."""
        yield from written_out(EACH, "term", body)

    def declare(self) -> Iterator[t.Stmt]:
        """Yield the lane's variables."""
        for name in (*self.words, self._digit, self._place):
            yield t.Var(name.name, type=f"array<u32, {EACH}>")

    def slot(self, number: t.Expr) -> t.Expr:
        """Return the slot of one of the lane's terms, as terms are read and written.

        Neighbours have neighbouring slots: what they touch in memory is contiguous.
        """
        return number * DIGITS + self._lane

    def _own(self, number: t.Expr) -> t.Expr:
        """Return its slot when terms are sorted: a lane's follow each other."""
        return self._lane * EACH + number

    def at(self, slot: t.Expr) -> t.Expr:
        """Return the address in workgroup memory of a slot.

        Neighbours that each take 8 slots would meet in the same banks of memory; so the
        places of 32 slots are exchanged, in a way that differs from each 32 to the next.
        """
        return self._shared[t.call(self._swizzled, slot)]

    def sort(self, many: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that sort a tile's words by one digit; the first `many` are terms.

        Afterwards each word is that of `slot(number)`, and the keys are at their slots.
        """
        for word in self.words:
            yield from self._exchange(word, self.slot, self._own)
        for shift in range(0, DIGIT_BITS, HALF):
            yield from self._rank(shift, many)
            # After the last half terms go out to memory: neighbouring lanes have
            # neighbours.
            last = shift + HALF == DIGIT_BITS
            to = self.slot if last else self._own
            for word in reversed(self.words):
                yield from self._exchange(word, self._place.__getitem__, to)

    def _exchange(
        self,
        word: t.Expr,
        source: Callable[[t.Expr], t.Expr],
        target: Callable[[t.Expr], t.Expr],
    ) -> Iterator[t.Stmt]:
        """Yield the statements that exchange the lanes' words through slots."""
        yield t.BARRIER
        yield from self.each(lambda k: [t.Assign(self.at(source(k)), word[k])])
        yield t.BARRIER
        yield from self.each(lambda k: [t.Assign(word[k], self.at(target(k)))])

    def _rank(self, shift: int, many: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that find each term's slot by four bits."""
        yield t.BARRIER
        for row in range(COUNTERS):
            yield t.Assign(self.at(self._lane + row * DIGITS), t.ZERO)
        yield from self.each(lambda k: self._count(k, shift, many))
        yield t.BARRIER
        yield from self._sum_up()
        yield t.BARRIER
        yield from self.each(lambda k: [self._add_before(k)])

    def _add_before(self, number: t.Expr) -> t.Stmt:
        before = self._counted(self._digit[number])
        return t.Assign(self._place[number], before, "+=")

    def _count(self, number: t.Expr, shift: int, many: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that count a term's digit, the last one for no term."""
        block: list[t.Stmt] = []
        byte = self._digit_of(block, self.words[0][number])
        yield from block
        last = t.u32(DIGITS - 1)
        chosen = t.call("select", last, byte, self._own(number) < many)
        digit = self._digit[number]
        yield t.Assign(digit, t.Binary(">>", chosen, t.u32(shift)) % (1 << HALF))
        yield t.Assign(self._place[number], self._counted(digit))
        # Two digits share a word: 16 bits each count up to a tile's terms.
        one = t.Binary("<<", t.ONE, _half(digit))
        yield t.Assign(self._counter(digit), one, "+=")

    def _counter(self, digit: t.Expr) -> t.Expr:
        return self.at(digit % COUNTERS * DIGITS + self._lane)

    def _counted(self, digit: t.Expr) -> t.Expr:
        value = t.Binary(">>", self._counter(digit), _half(digit))
        return t.Binary("&", value, t.u32(0xFFFF))

    def _sum_up(self) -> Iterator[t.Stmt]:
        """Yield the statements that replace counters by the sums of those before."""
        names = ("sum", "found", "before", "counter")
        sum_, found, before, counter = map(self._array, names)
        counters = [self.at(self._lane * COUNTERS + row) for row in range(COUNTERS)]
        yield t.Var(sum_.name, t.ZERO)
        yield from (t.Assign(sum_, own, "+=") for own in counters)
        yield t.Let(found.name, self.sums_before(sum_))
        # The digits of the upper halves come behind all of the lower ones.
        lower = t.Binary("<<", found.member("y"), t.u32(16))
        yield t.Var(before.name, found.member("x") + lower)
        yield t.Var(counter.name, t.ZERO)
        for own in counters:
            yield t.Assign(counter, own)
            yield t.Assign(own, before)
            yield t.Assign(before, counter, "+=")


def _half(digit: t.Expr) -> t.Expr:
    """Return the lowest bit of a digit's counter."""
    return digit // COUNTERS * 16


def written_out(
    count: int, name: str, body: Callable[[t.Expr], Iterable[t.Stmt]]
) -> Iterator[t.Stmt]:
    """Yield the statements of `body` for each number below `count`, without a loop.

    A checked shader counts the turns of a loop, so that drivers leave it as it is, and
    arrays of a lane are in memory then, not in registers.  A pass of a sort of 2^24 keys
    with a word each took an H200 643 us with loops, and takes 339.
    """
    for number in range(count):
        block = tuple(body(t.u32(number)))
        named = any(isinstance(each, t.Let | t.Var) for each in block)
        yield from (t.Block(f"{name} {number}", block),) if named else block


_SUMS = """fn {name}(value: u32, lane: u32) -> vec2u {{
    var sum = value;
    var base = 0u;
    for (var step = 1u; step < {count}u; step <<= 1u) {{
        {sums}[base + lane] = sum;
        workgroupBarrier();
        if (lane >= step) {{
            sum += {sums}[base + lane - step];
        }}
        base = {count}u - base;
    }}
    {sums}[base + lane] = sum;
    workgroupBarrier();
    return vec2u(sum - value, {sums}[base + {count}u - 1u]);
}}"""
"""Two arrays are written in turn, so that a step needs a single barrier."""


def sums_before(shader: ShaderBuilder) -> Callable[[t.Expr], t.Expr]:
    """Declare a function for a lane's prefix sum and the total; return how to call it."""
    size = 2 * DIGITS
    own = shader.workgroup_array("sums", f"array<u32, {size}>", 4 * size)
    assert isinstance(own, t.Ident)
    name = shader.fresh("sums_before")
    text = _SUMS.format(name=name, sums=own.name, count=DIGITS)
    shader.declare("function sums_before", wgsl.Verbatim(text))
    return lambda value: t.call(name, value, shader.lane)
