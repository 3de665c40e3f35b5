"""How the lanes of a group join their totals: several results of each lane at once.

As many totals as fit go through workgroup memory at once, in a round.  Of 8 totals of 128
lanes, each total has 16 lanes, and each of these adds up 8 lanes' values of it.  Then the 16
lanes join their values in a tree, by fours.  The order of every sum is fixed.

    total         0 0 0 ... 0   1 1 1 ... 1   ...   7 7 7 ... 7
    lanes         0  to  15     16  to  31          112 to 127
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Reduce
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import BYTES, shared_array
from kerngen.schedule.lowering.identities import accumulate, identity, in_pairs
from kerngen.shader import tree as t

AT_ONCE: Final = 4
"""How many values a lane joins in one expression: a tree of fours has half of the barriers
that one of pairs has."""


@final
@dataclass(frozen=True, slots=True)
class Round:
    """A round of joining totals, after which some lanes have the result of one total each.

    - `before`: the statements of the round
    - `value`: the result, in the lanes where the condition `holds` is true
    - `total`, `group`: the number of the lane's total, and of the group of lanes that it is of
    """

    before: list[t.Stmt]
    value: t.Expr
    holds: t.Expr
    total: t.Expr
    group: t.Expr
    comment: str


@final
@dataclass(frozen=True, slots=True)
class LaneGroups:
    """`across` groups of `along` lanes each, and `room`: bytes of workgroup memory for joining."""

    along: int
    across: int
    room: int

    @property
    def lanes(self) -> int:
        """The number of lanes of all groups."""
        return self.along * self.across

    @property
    def most(self) -> int:
        """The most totals that the groups can join at once."""
        return min(self.along, self.room // (BYTES * self.lanes))

    def elements(self, totals: int) -> int:
        """Return how many elements so many totals take in workgroup memory, joined in rounds."""
        return max(_powers(totals, self.most)) * self.lanes


def join_rounds(
    shader: ShaderBuilder,
    reduce: Reduce,
    totals: Sequence[t.Expr],
    groups: LaneGroups,
    shared: t.Expr | None = None,
) -> Iterator[Round]:
    """Yield the rounds in which the lanes of each group join their totals, in memory `shared`."""
    if shared is None:
        shared = shared_array(shader, reduce, groups.elements(len(totals)))
    counts = _powers(len(totals), groups.most)
    yield from _in_rounds(shader, reduce, totals, counts, groups, shared)


def join_at_once(
    shader: ShaderBuilder,
    reduce: Reduce,
    totals: Sequence[t.Expr],
    groups: LaneGroups,
) -> Round | None:
    """Return the one round in which all totals are joined; None if there is no room for it.

    Its numbers of totals go up to a power of two: some may be beyond the last one.
    """
    count = 1 << (len(totals) - 1).bit_length()
    if count > groups.most:
        return None
    shared = shared_array(shader, reduce, groups.elements(count))
    (only,) = _in_rounds(shader, reduce, totals, [count], groups, shared)
    return only


def _in_rounds(
    shader: ShaderBuilder,
    reduce: Reduce,
    totals: Sequence[t.Expr],
    counts: Iterable[int],
    groups: LaneGroups,
    shared: t.Expr,
) -> Iterator[Round]:
    """Yield a round for each count of totals: a power of two, which divides a group's lanes."""
    along, across, lanes = groups.along, groups.across, groups.lanes
    first = 0
    for count in counts:
        before: list[t.Stmt] = [t.BARRIER] if first else []
        before += [
            t.Assign(shared[shader.lane + number * lanes], total)
            for number, total in enumerate(totals[first : first + count])
        ]
        before.append(t.BARRIER)
        # `rest` lanes have the same total: they add up `count` values each, then join these.
        rest = along // count
        own = shader.lane // rest
        if count > 1:
            before += _take_one(shader, reduce, shared, along, count)
        before += _tree(shader, reduce, shared, rest, lanes)
        left = [shared[shader.lane + n] for n in range(_left(rest))]
        yield Round(
            before,
            value=in_pairs(reduce.kind, left),
            holds=(shader.lane if rest == lanes else shader.lane % rest).equals(0),
            total=own // across + first if count > 1 else t.u32(first),
            group=own % across,
            comment=f"totals {first} to {first + count - 1}",
        )
        first += count


def _powers(count: int, most: int) -> Iterator[int]:
    """Yield powers of two, the largest first, that add up to a number."""
    while count:
        part = 1 << (min(count, most).bit_length() - 1)
        yield part
        count -= part


def _take_one(
    shader: ShaderBuilder, reduce: Reduce, shared: t.Expr, along: int, count: int
) -> Iterator[t.Stmt]:
    """Let every lane sum `count` lanes' values of one total, and store the sum in its place.

    Lanes of different totals begin at different values, (own + number) % count, so that
    they read different banks of the memory.
    """
    names = ("own", "begin", "turn", "joined")
    own, start, turn, joined = (t.Ident(shader.name(n, "join")) for n in names)
    rest = along // count
    yield t.Let(own.name, shader.lane // rest)
    yield t.Let(start.name, own * along + shader.lane % rest)

    def value(number: t.Operand) -> t.Expr:
        return shared[start + (own + number) % count * rest]

    # Up to four values are one expression; more are a loop over fours.
    values = [value(turn + n) for n in range(min(count, AT_ONCE))]
    if count > AT_ONCE:
        zero = identity(shader, reduce.kind, reduce.type)
        take = accumulate(reduce.kind, joined, in_pairs(reduce.kind, values))
        yield t.Var(joined.name, zero)
        yield t.count_up(turn.name, 0, t.u32(count), AT_ONCE, take)
    else:
        here = [value(n) for n in range(count)]
        yield t.Let(joined.name, in_pairs(reduce.kind, here))
    yield t.BARRIER
    yield t.Assign(shared[shader.lane], joined)
    yield t.BARRIER


def _tree(
    shader: ShaderBuilder, reduce: Reduce, shared: t.Expr, count: int, lanes: int
) -> Iterator[t.Stmt]:
    """Join runs of `count` lanes' values in a tree, until at most four of each are left."""
    place = shader.lane if count == lanes else shader.lane % count
    while count > AT_ONCE:
        count //= AT_ONCE
        values = [shared[shader.lane + n * count] for n in range(AT_ONCE)]
        merged = t.Assign(shared[shader.lane], in_pairs(reduce.kind, values))
        yield t.If(place < count, (merged,))
        yield t.BARRIER


def _left(count: int) -> int:
    """Return how many values of `count` the tree leaves to be joined."""
    while count > AT_ONCE:
        count //= AT_ONCE
    return count
