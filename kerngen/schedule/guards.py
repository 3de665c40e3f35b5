"""Which outcomes of guards lead to a stage, so that no schedule is made in vain."""

from __future__ import annotations

from itertools import permutations
from typing import Final, TypeAlias

from kerngen.ir.nodes import Expr

Outcomes: TypeAlias = frozenset[tuple[Expr, bool]]
"""Some guards, each with whether it holds; the others may hold or not."""
Ways: TypeAlias = frozenset[Outcomes]
"""All ways to a place; none lead to where there are none."""

NO_WAY: Final[Ways] = frozenset()
EVERY_WAY: Final[Ways] = frozenset((frozenset(),))


def assuming(ways: Ways, guard: Expr | None, *, holds: bool) -> Ways:
    """Return the ways on which a guard holds, or does not; none at all always does."""
    if guard is None:
        return ways if holds else NO_WAY
    possible = (way for way in ways if (guard, not holds) not in way)
    return either(frozenset(way | {(guard, holds)} for way in possible), NO_WAY)


def either(one: Ways, other: Ways) -> Ways:
    """
    Return the ways of both, as few as say the same.

    Before:  {a}, {a, b}    and    {a, b}, {a, not b}
    After:   {a}            and    {a}
    """
    ways = one | other
    for first, second in permutations(ways, 2):
        if first <= second:
            return either(ways - {second}, NO_WAY)
        apart = first ^ second
        if len(apart) > len({guard for guard, _ in apart}) == 1:
            return either(ways - {first, second}, frozenset((first & second,)))
    return ways
