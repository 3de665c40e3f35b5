"""Which outcomes of guards lead to a stage, so that no schedule is made in vain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NewType, TypeAlias, final

from kerngen.ir.nodes import Expr

Ways = NewType("Ways", int)
"""All ways to a place, by the number of their diagram."""

NO_WAY: Final = Ways(0)
EVERY_WAY: Final = Ways(1)

_Node: TypeAlias = tuple[int, Ways, Ways]
"""A guard's number, the ways on which it does not hold, and those on which it does."""
_LEAF: Final = -1


def _leaves() -> list[_Node]:
    return [(_LEAF, NO_WAY, NO_WAY), (_LEAF, EVERY_WAY, EVERY_WAY)]


@final
@dataclass(frozen=True)
class Guards:
    """
    Tells ways apart by decision diagrams: ordered, reduced, the guard met last on top.

    Equal ways have one number; none are `NO_WAY`.  In that order, a schedule more for
    the same stage adds one node, however many there are.

        first if a, second if b    {a, not a and b} is    b ? 1 : (a ? 1 : 0)
    """

    _numbers: dict[Expr, int] = field(default_factory=dict[Expr, int])
    _nodes: list[_Node] = field(default_factory=_leaves)
    _known: dict[_Node, Ways] = field(default_factory=dict[_Node, Ways])
    _joined: dict[tuple[Ways, Ways], Ways] = field(
        default_factory=dict[tuple[Ways, Ways], Ways]
    )

    def assuming(self, ways: Ways, guard: Expr | None, *, holds: bool) -> Ways:
        """Return the ways on which a guard holds, or not; none at all always does."""
        if guard is None:
            return ways if holds else NO_WAY
        number = self._numbers.setdefault(guard, len(self._numbers))
        return self._assuming(ways, number, holds, {})

    def either(self, one: Ways, other: Ways) -> Ways:
        """Return the ways of both."""
        if one == other or NO_WAY in (one, other):
            return Ways(one | other)
        if EVERY_WAY in (one, other):
            return EVERY_WAY
        key = (min(one, other), max(one, other))
        if key not in self._joined:
            top = max(self._nodes[one][0], self._nodes[other][0])
            (without, with_), (without_too, with_too) = (
                self._parted(ways, top) for ways in (one, other)
            )
            self._joined[key] = self._node(
                top, self.either(without, without_too), self.either(with_, with_too)
            )
        return self._joined[key]

    def _assuming(
        self, ways: Ways, number: int, holds: bool, done: dict[Ways, Ways]
    ) -> Ways:
        """Go down to a guard; `done` are the ways that other paths led to."""
        if ways == NO_WAY:
            return NO_WAY
        if ways not in done:
            top = max(self._nodes[ways][0], number)
            without, with_ = self._parted(ways, top)
            if top == number:
                sides = (NO_WAY, with_) if holds else (without, NO_WAY)
            else:
                sides = (
                    self._assuming(without, number, holds, done),
                    self._assuming(with_, number, holds, done),
                )
            done[ways] = self._node(top, *sides)
        return done[ways]

    def _parted(self, ways: Ways, number: int) -> tuple[Ways, Ways]:
        """Return the ways that are left where a guard does not hold, and where it does."""
        top, without, with_ = self._nodes[ways]
        return (without, with_) if top == number else (ways, ways)

    def _node(self, number: int, without: Ways, with_: Ways) -> Ways:
        if without == with_:
            return without
        node = (number, without, with_)
        if node not in self._known:
            self._known[node] = Ways(len(self._nodes))
            self._nodes.append(node)
        return self._known[node]
