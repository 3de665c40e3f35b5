"""Sort a tile of terms by eight bits of their keys, in workgroup memory.

Each lane has eight consecutive terms of the tile.  It sorts by four bits, then by the next
four.  For each, a lane counts the digits of its own terms in 16 counters of 16 bits, in
eight words:

    digit d:  word d % 8, its lower half for d < 8, else its upper half

The counters lie digit by digit, and those of a digit lane by lane:

    lower halves    digit 0: lane 0, lane 1, ...    digit 1: lane 0, lane 1, ...
    upper halves    digit 8: lane 0, lane 1, ...    digit 9: lane 0, lane 1, ...

A term's new slot is the sum of all counters before that of its digit and lane, plus the
number of terms before it in its lane with the same digit.  Terms with equal digits keep
their order, and as no lane changes another's counter, no atomic operation is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, final

from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

DIGIT_BITS: Final = 8
"""How many bits of the key a pass sorts by."""

DIGITS: Final = 1 << DIGIT_BITS
"""How many digits there are, and lanes of a workgroup: for each digit, a lane sums counts."""

EACH: Final = 8
"""How many terms a lane has; a tile and the counters of its lanes take 8 KiB each."""

TILE: Final = DIGITS * EACH
"""How many terms a tile has: 2,048."""

COUNTERS: Final = 8
"""How many words have a lane's 16 counters, two in each word."""

HALF: Final = 4
"""How many bits a tile is sorted by at a time: half of a pass's."""

Digit = Callable[[list[t.Stmt], t.Expr], t.Expr]
"""Returns the digit of a term, given its first word; adds statements to the block."""


@final
class TileSort:
    """Builds the sort of a tile; each term has some 32-bit words, the first with its key.

    `words` are the variables of the lane's terms, one for each word: `array<u32, 8>`.
    """

    def __init__(self, shader: ShaderBuilder, words: int, digit: Digit) -> None:
        """Declare the workgroup memory, and name the lane's variables."""
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
        """Yield the statements that `body` returns for each of a lane's terms, 0 to 7."""
        yield from written_out(EACH, "term", body)

    def declare(self) -> Iterator[t.Stmt]:
        """Yield the declarations of the lane's variables."""
        for name in (*self.words, self._digit, self._place):
            yield t.Var(name.name, type=f"array<u32, {EACH}>")

    def slot(self, number: t.Expr) -> t.Expr:
        """Return the slot of the lane's term `number` while terms are loaded and stored.

        Neighbouring lanes have neighbouring slots, so that they access contiguous memory.
        """
        return number * DIGITS + self._lane

    def _own(self, number: t.Expr) -> t.Expr:
        """Return the slot of one of the lane's terms while they are sorted.

        A lane has consecutive slots, so that a stable order is one by lane, then number.
        """
        return self._lane * EACH + number

    def at(self, slot: t.Expr) -> t.Expr:
        """Return the element of workgroup memory in which a slot's word is.

        Lanes that access every eighth slot would meet in the same banks of memory.  So
        the 32 places of each row of slots are permuted, in each row differently:
        `slot ^ ((slot >> 5u) & 31u)`.
        """
        return self._shared[t.call(self._swizzled, slot)]

    def sort(self, many: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that sort a tile by one digit; only `many` slots have terms.

        Those are the first ones.  Afterwards term `number` of a lane is the one of
        `slot(number)`, and the workgroup memory has the first words of all slots, in order.
        """
        # From the order of reading, lane by lane, to eight consecutive terms for each lane.
        for word in self.words:
            yield from self._exchange(word, self.slot, self._own)
        for shift in range(0, DIGIT_BITS, HALF):
            yield from self._rank(shift, many)
            # After the last four bits terms are written to memory: neighbouring lanes have
            # neighbouring terms.  The keys are moved last, so that they stay in the tile.
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
        """Yield the statements that move a word of all terms from slots to slots.

        In WGSL:

            workgroupBarrier();
            tile[swizzled(lane)] = word[0u];            // source(0), and so on
            workgroupBarrier();
            word[0u] = tile[swizzled(lane * 8u)];       // target(0), and so on
        """
        yield t.BARRIER
        yield from self.each(lambda k: [t.Assign(self.at(source(k)), word[k])])
        yield t.BARRIER
        yield from self.each(lambda k: [t.Assign(word[k], self.at(target(k)))])

    def _rank(self, shift: int, many: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statements that compute each term's new slot, by four bits.

        `slot[k]` is first the number of terms before it in its lane with the same digit,
        then the sums of the counters before are added.
        """
        yield t.BARRIER
        # Clear the lane's counters, which share the memory of the terms.
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
        """Yield the statements that count a term's digit.

        In WGSL:

            digit[k] = select(255u, byte, lane * 8u + k < many) >> shift & 15u;
            slot[k] = the counter of the digit;          // terms before it in the lane
            the counter += 1;
        """
        block: list[t.Stmt] = []
        byte = self._digit_of(block, self.words[0][number])
        yield from block
        # Slots past the last term have the greatest digit, and so stay behind all terms.
        last = t.u32(DIGITS - 1)
        chosen = t.call("select", last, byte, self._own(number) < many)
        digit = self._digit[number]
        yield t.Assign(digit, t.Binary(">>", chosen, t.u32(shift)) % (1 << HALF))
        yield t.Assign(self._place[number], self._counted(digit))
        # Two digits share a word: 16 bits are enough for the sums, up to 2,048 terms.
        one = t.Binary("<<", t.ONE, _half(digit))
        yield t.Assign(self._counter(digit), one, "+=")

    def _counter(self, digit: t.Expr) -> t.Expr:
        """Return the word of the lane's counter for a digit."""
        return self.at(digit % COUNTERS * DIGITS + self._lane)

    def _counted(self, digit: t.Expr) -> t.Expr:
        """Return the value of the lane's counter for a digit."""
        value = t.Binary(">>", self._counter(digit), _half(digit))
        return t.Binary("&", value, t.u32(0xFFFF))

    def _sum_up(self) -> Iterator[t.Stmt]:
        """Yield the statements that replace each counter by the sum of those before it.

        Here a lane takes eight consecutive words, of one digit and eight lanes.  Both
        halves of a word are added at once.
        """
        names = ("sum", "found", "before", "counter")
        sum_, found, before, counter = map(self._array, names)
        counters = [self.at(self._lane * COUNTERS + row) for row in range(COUNTERS)]
        # The lane's sum of its words, then those of all lanes before it.
        yield t.Var(sum_.name, t.ZERO)
        yield from (t.Assign(sum_, own, "+=") for own in counters)
        yield t.Let(found.name, self.sums_before(sum_))
        # The digits of the upper halves come behind all of the lower ones: the total of the
        # lower halves is added to every upper half.  What the shift drops is the total of
        # the upper halves.
        lower = t.Binary("<<", found.member("y"), t.u32(16))
        yield t.Var(before.name, found.member("x") + lower)
        yield t.Var(counter.name, t.ZERO)
        for own in counters:
            yield t.Assign(counter, own)
            yield t.Assign(own, before)
            yield t.Assign(before, counter, "+=")


def _half(digit: t.Expr) -> t.Expr:
    """Return the lowest bit of a digit's counter in its word: 0, or 16 from digit 8 on."""
    return digit // COUNTERS * 16


def written_out(
    count: int, name: str, body: Callable[[t.Expr], Iterable[t.Stmt]]
) -> Iterator[t.Stmt]:
    """Yield the statements of `body` for each number below `count`: a loop, unrolled.

    wgpu's checks count the turns of a loop, so that drivers do not unroll it, and then a
    lane's arrays are in memory and not in registers.  A pass of a sort of 2^24 keys with a
    word each took an H200 643 us with loops, and takes 339 without.
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
"""A lane's prefix sum without its own value (x), and the total of all 256 lanes (y).

It is a Hillis-Steele scan: in each of eight steps a lane adds the sum of the lane `step`
before it.  Two halves of the array are written in turn, so that a step needs one barrier.
"""


def sums_before(shader: ShaderBuilder) -> Callable[[t.Expr], t.Expr]:
    """Declare the WGSL function `sums_before`; return a function that builds a call of it.

    The call has the lane's value as its argument.  It gives a vec2u: the sum of the values of
    all lanes before, and the total of the workgroup.
    """
    size = 2 * DIGITS
    own = shader.workgroup_array("sums", f"array<u32, {size}>", 4 * size)
    assert isinstance(own, t.Ident)
    name = shader.fresh("sums_before")
    text = _SUMS.format(name=name, sums=own.name, count=DIGITS)
    shader.declare("function sums_before", wgsl.Verbatim(text))
    return lambda value: t.call(name, value, shader.lane)
