"""Sort the terms of a keyed reduction by the numbers of their bins, by radix.

Eight bits at a time, the lowest first, in three dispatches: how often each digit occurs in
each block of terms; how many terms with the same digit lie in blocks before; each term to
its place.  Terms of one bin keep their order, so that sums come out the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, final

from kerngen.ir.analysis.reads import loads
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.types import Scalar
from kerngen.plan.size import Literal, Size, ceil_div, maximum, minimum
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.per_element import linear_group
from kerngen.schedule.program import Shader
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.sizes import to_wgsl
from kerngen.shader import tree as t

DIGIT_BITS: Final = 8
DIGITS: Final = 1 << DIGIT_BITS
"""Also the lanes of a workgroup: each has a digit of its own."""

MOST_ROUNDS: Final = 16
"""A workgroup takes a term for each lane in a round: as few as leave 256 blocks or less,
for which a single step adds up the counts; of many terms, so many."""

WORD: Final = 32
WORDS: Final = DIGITS // WORD
"""So many words have a bit for each lane."""

FIRST: Final = ("keys", "items")
SECOND: Final = ("keys_2", "items_2")
"""The scratch buffers that terms are moved between: their keys, and their numbers."""


def moves_values(found: Scatter) -> bool:
    """Whether items are the terms themselves, as bits, and not their numbers.

    A number of 32 bits takes no more memory than that of its term, and need not be read
    where it happened to be: 2^26 reads in random order took as long as the sort.  The
    terms are then computed beside their keys, if one dispatch can bind what both read.
    """
    read = {load.tensor for load in loads(found.body)}
    read |= {load.tensor for key in found.keys for load in loads(key.value)}
    read |= {load.tensor for guard in found.guards for load in loads(guard)}
    is_word = isinstance(found.reduce.type, Scalar)
    return not found.columns and is_word and len(read) + 3 <= MAX_TENSORS


def sort_scratch(found: Scatter) -> tuple[Scratch, ...]:
    """Return the buffers of the sort."""
    task, terms = found.task, found.term_count
    pairs = (Scratch(task.scratch_name(name), terms) for name in (*FIRST, *SECOND))
    counts = Scratch(task.scratch_name("counts"), _blocks(found) * DIGITS)
    return (*pairs, counts, Scratch(task.scratch_name("totals"), Literal(DIGITS)))


def sorting(found: Scatter, passes: int) -> Iterator[Shader]:
    """Yield the dispatches that sort by so many digits; the result is in `sorted_into`."""
    for number in range(passes):
        names = _renamed(found, number)
        yield renamed(_counting(found, number * DIGIT_BITS), names)
        yield _scanning(found)
        yield renamed(_placing(found, number * DIGIT_BITS), names)


def sorted_into(found: Scatter, passes: int) -> dict[str, str]:
    """Return which buffers a shader binds as `FIRST` after so many passes."""
    task, target = found.task, (FIRST, SECOND)[passes % 2]
    pairs = zip(FIRST, target, strict=True)
    return {task.scratch_name(a): task.scratch_name(b) for a, b in pairs}


def renamed(shader: Shader, names: Mapping[str, str]) -> Shader:
    """Return a shader that binds other buffers, by those that it was written for."""
    bindings = (
        replace(binding, name=names.get(binding.name, binding.name))
        for binding in shader.bindings
    )
    return replace(shader, bindings=tuple(bindings))


def _renamed(found: Scatter, number: int) -> dict[str, str]:
    """Return what the pass of a number moves terms between: each other one goes back."""
    if number % 2 == 0:
        return {}
    name = found.task.scratch_name
    there, back = map(name, FIRST + SECOND), map(name, SECOND + FIRST)
    return dict(zip(there, back, strict=True))


def _rounds_of(found: Scatter) -> Size:
    needed = ceil_div(found.term_count, DIGITS * DIGITS)
    return maximum(minimum(needed, MOST_ROUNDS), 1)


def _blocks(found: Scatter) -> Size:
    return ceil_div(found.term_count, _rounds_of(found) * DIGITS)


def _counting(found: Scatter, shift: int) -> Shader:
    shader = ShaderBuilder(found.task, {})
    keys = shader.scratch("keys", Scalar.U32, written=False)
    counts = shader.scratch("counts", Scalar.U32, written=True)
    own = shader.workgroup_array("own", f"array<atomic<u32>, {DIGITS}>", 4 * DIGITS)
    block = t.Ident(shader.fresh("block"))
    digit = _digit(shader, shift, keys.load(term := t.Ident(shader.fresh("term"))))
    count = t.Evaluate(t.call("atomicAdd", t.Unary("&", own[digit]), t.ONE))
    reset = t.Evaluate(t.call("atomicStore", t.Unary("&", own[shader.lane]), t.ZERO))
    at = shader.lane * to_wgsl(_blocks(found), shader) + block
    body: list[t.Stmt] = [
        t.Let(block.name, linear_group(shader)),
        reset,
        t.BARRIER,
        *_rounds(
            found, shader, block, term, (t.If(_is_term(found, shader, term), (count,)),)
        ),
        t.BARRIER,
        t.If(
            block < to_wgsl(_blocks(found), shader),
            (counts.store(at, t.call("atomicLoad", t.Unary("&", own[shader.lane]))),),
        ),
    ]
    return shader.finish(
        body,
        groups=_blocks(found),
        workgroup_size=DIGITS,
        summary="sort, first of three dispatches: count the digits of each block.",
        variant="sort_count",
        trips=_rounds_of(found),
    )


def _scanning(found: Scatter) -> Shader:
    """Let a workgroup go over the blocks for each digit, and add up the counts before."""
    shader = ShaderBuilder(found.task, {})
    counts = shader.scratch("counts", Scalar.U32, written=True)
    totals = shader.scratch("totals", Scalar.U32, written=True)
    own = shader.workgroup_array("own", f"array<u32, {DIGITS}>", 4 * DIGITS)
    digit, blocks, before, first, block, count, sum_ = (
        t.Ident(shader.fresh(name))
        for name in ("digit", "blocks", "before", "first", "block", "count", "sum")
    )
    loop: tuple[t.Stmt, ...] = (
        t.Let(block.name, first + shader.lane),
        t.Var(count.name, t.ZERO),
        t.If(block < blocks, (t.Assign(count, counts.load(digit * blocks + block)),)),
        t.Var(sum_.name, count),
        *running_sum(shader, own, sum_),
        t.If(
            block < blocks,
            (counts.store(digit * blocks + block, before + sum_ - count),),
        ),
        t.Assign(before, own[DIGITS - 1], "+="),
        t.BARRIER,
    )
    body: list[t.Stmt] = [
        t.Let(digit.name, linear_group(shader)),
        t.Let(blocks.name, to_wgsl(_blocks(found), shader)),
        t.Var(before.name, t.ZERO),
        t.count_up(first.name, 0, blocks, DIGITS, *loop),
        t.If(shader.lane.equals(0), (totals.store(digit, before),)),
    ]
    return shader.finish(
        body,
        groups=Literal(DIGITS),
        workgroup_size=DIGITS,
        summary="sort, second of three dispatches: how many terms of a digit are in blocks before.",
        variant="sort_scan",
        trips=ceil_div(_blocks(found), DIGITS),
    )


def running_sum(shader: ShaderBuilder, own: t.Expr, sum_: t.Ident) -> Iterator[t.Stmt]:
    """Yield what adds to each lane's number those of the lanes before; all are in `own`."""
    yield t.Assign(own[shader.lane], sum_)
    yield t.BARRIER
    step = 1
    while step < DIGITS:
        lower = t.Assign(sum_, own[shader.lane - step], "+=")
        yield t.If(t.Binary(">=", shader.lane, t.u32(step)), (lower,))
        yield t.BARRIER
        yield t.Assign(own[shader.lane], sum_)
        yield t.BARRIER
        step *= 2


@final
class _Marks:
    """A bit for each lane, in words for each digit: which lanes have a term of it."""

    def __init__(self, shader: ShaderBuilder) -> None:
        """Declare the words; the lane's own bit is a variable of the shader."""
        size = DIGITS * WORDS
        self._lane, self._word = shader.lane, t.Ident(shader.fresh("word"))
        self._bits = shader.workgroup_array(
            "bits", f"array<atomic<u32>, {size}>", 4 * size
        )
        self._bit = t.Ident(shader.fresh("bit"))
        self.own = t.Let(self._bit.name, t.Binary("<<", t.ONE, self._lane % WORD))

    def clear(self) -> t.Stmt:
        """Return what takes the bits away of the digit that is the lane's number."""
        place = t.Unary("&", self._at(self._word, self._lane))
        reset = t.Evaluate(t.call("atomicStore", place, t.ZERO))
        return t.count_up(self._word.name, 0, t.u32(WORDS), 1, reset)

    def mark(self, digit: t.Expr) -> t.Stmt:
        """Return what sets the lane's bit for a digit."""
        place = t.Unary("&", self._at(self._lane // WORD, digit))
        return t.Evaluate(t.call("atomicOr", place, self._bit))

    def count_before(self, total: t.Expr, digit: t.Expr) -> tuple[t.Stmt, ...]:
        """Return what adds how many lanes before this one have the digit."""
        below = t.Binary("-", self._bit, t.ONE)
        own = t.Binary("&", self._load(self._lane // WORD, digit), below)
        return (
            t.Assign(total, t.call("countOneBits", own), "+="),
            self._add(total, self._lane // WORD, digit),
        )

    def count_all(self, total: t.Expr) -> t.Stmt:
        """Return what adds how many lanes have the digit that is the lane's number."""
        return self._add(total, t.u32(WORDS), self._lane)

    def _add(self, total: t.Expr, words: t.Expr, digit: t.Expr) -> t.Stmt:
        ones = t.call("countOneBits", self._load(self._word, digit))
        return t.count_up(self._word.name, 0, words, 1, t.Assign(total, ones, "+="))

    def _load(self, word: t.Expr, digit: t.Expr) -> t.Expr:
        return t.call("atomicLoad", t.Unary("&", self._at(word, digit)))

    def _at(self, word: t.Expr, digit: t.Expr) -> t.Expr:
        return self._bits[word * DIGITS + digit]


def _placing(found: Scatter, shift: int) -> Shader:
    """Move the terms of a block, in rounds of one for each lane.

    A term is placed behind those of the same digit: in blocks before, in rounds before,
    and in lanes before.  At first, terms are in the order of their numbers, which
    are the items unless those are the terms themselves.
    """
    shader = ShaderBuilder(found.task, {})
    counts, totals = (
        shader.scratch(name, Scalar.U32, written=False) for name in ("counts", "totals")
    )
    start = shader.workgroup_array("start", f"array<u32, {DIGITS}>", 4 * DIGITS)
    marks = _Marks(shader)
    block, term, sum_, blocks = (
        t.Ident(shader.fresh(name)) for name in ("block", "term", "sum", "blocks")
    )
    own = totals.load(shader.lane)
    before = counts.load(shader.lane * blocks + block)
    has_items = shift > 0 or moves_values(found)
    loop = _placing_round(found, shader, marks, (term, start, shift))
    body: list[t.Stmt] = [
        t.Let(block.name, linear_group(shader)),
        t.Let(blocks.name, to_wgsl(_blocks(found), shader)),
        t.If(t.Binary(">=", block, blocks), (t.Return(),)),
        marks.own,
        t.Var(sum_.name, own),
        *running_sum(shader, start, sum_),
        t.Assign(start[shader.lane], sum_ - own + before),
        *_rounds(found, shader, block, term, tuple(loop)),
    ]
    return shader.finish(
        body,
        groups=_blocks(found),
        workgroup_size=DIGITS,
        summary="sort, last of three dispatches: move each term behind those before it.",
        variant="sort_place" if has_items else "sort_place.first",
        trips=_rounds_of(found) * (3 * WORDS + 1),
    )


def _placing_round(
    found: Scatter,
    shader: ShaderBuilder,
    marks: _Marks,
    given: tuple[t.Ident, t.Expr, int],
) -> Iterator[t.Stmt]:
    """Yield a round: `given` are the lane's term, where digits begin, and the digit."""
    term, start, shift = given
    keys = shader.scratch("keys", Scalar.U32, written=False)
    item: t.Expr = term
    if shift or moves_values(found):
        item = shader.scratch("items", Scalar.U32, written=False).load(term)
    keys_to, items_to = (
        shader.scratch(name, Scalar.U32, written=True) for name in SECOND
    )
    is_term, key, digit, place, count = (
        t.Ident(shader.fresh(name))
        for name in ("is_term", "key", "digit", "place", "count")
    )
    move = (
        t.Var(place.name, start[digit]),
        *marks.count_before(place, digit),
        keys_to.store(place, key),
        items_to.store(place, item),
    )
    yield marks.clear()
    yield t.BARRIER
    yield t.Let(is_term.name, _is_term(found, shader, term))
    yield t.Var(key.name, t.ZERO)
    yield t.If(is_term, (t.Assign(key, keys.load(term)),))
    yield t.Let(digit.name, _digit(shader, shift, key))
    yield t.If(is_term, (marks.mark(digit),))
    yield t.BARRIER
    yield t.If(is_term, move)
    yield t.BARRIER
    yield t.Var(count.name, t.ZERO)
    yield marks.count_all(count)
    yield t.Assign(start[shader.lane], count, "+=")


def _rounds(
    found: Scatter,
    shader: ShaderBuilder,
    block: t.Expr,
    term: t.Ident,
    body: tuple[t.Stmt, ...],
) -> Iterator[t.Stmt]:
    """Yield the loop of a block: in each round, a lane has one term."""
    number, rounds = (t.Ident(shader.fresh(name)) for name in ("round", "rounds"))
    yield t.Let(rounds.name, to_wgsl(_rounds_of(found), shader))
    place = (block * rounds + number) * DIGITS + shader.lane
    yield t.count_up(number.name, 0, rounds, 1, t.Let(term.name, place), *body)


def _is_term(found: Scatter, shader: ShaderBuilder, term: t.Expr) -> t.Expr:
    return term < shader.size(found.terms)


def _digit(shader: ShaderBuilder, shift: int, key: t.Expr) -> t.Expr:
    """Return eight bits of a key, from one on: the pipeline has its number."""
    by = shader.override("SHIFT", shift)
    return t.Binary("&", t.Binary(">>", key, by), t.u32(DIGITS - 1))
