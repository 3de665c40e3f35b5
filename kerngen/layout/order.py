"""Better orders of a struct's fields, with less padding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Final, final

from kerngen.ir.memory import Member, Struct
from kerngen.layout.rules import UNIFORM_UNIT, Footprint, Space, round_up
from kerngen.layout.types import footprint_of, place

MOST_WEIGHED: Final = 64
MOST_STATES: Final = 4096
"""The most fields, and sets of fields, for which the best of all orders is searched.

Fields with the same alignment and size are alike: of 3 vec3f and 2 f32 there are 4 * 3 sets.
Twelve fields are always few enough, as they have 2^12 sets if no two are alike.
"""


@final
@dataclass(frozen=True, slots=True)
class BetterOrder:
    """The size of a struct as declared, and with its fields in the order `names`."""

    struct: Struct
    space: Space
    size: int
    better: int
    names: tuple[str, ...]


def better_order(struct: Struct, space: Space) -> BetterOrder | None:
    """Return an order of fields that makes a struct smaller, or None.

    For few fields it is the best order, for many a good one:

        f32, vec3f, f32, f32, f32    48 bytes: 12 of padding before the vec3f, 8 at the end
        vec3f, f32, f32, f32, f32    32 bytes
    """
    size = _size(struct.members, space)
    wanted = [footprint_of(member, space) for member in struct.members]
    unit = max(_least_align(space), *(each.align for each in wanted))
    order = _best(wanted, unit) if _are_few(wanted) else _good(wanted)
    members = [struct.members[number] for number in order]
    better = _size(members, space)
    if better >= size:
        return None
    names = tuple(member.name for member in members)
    return BetterOrder(struct, space, size, better, names)


def _size(members: Iterable[Member], space: Space) -> int:
    return place("", members, space, least_align=_least_align(space)).size


def _least_align(space: Space) -> int:
    """Return the least alignment of a nested struct in an address space."""
    return UNIFORM_UNIT if space is Space.UNIFORM else 1


def _are_few(wanted: Sequence[Footprint]) -> bool:
    """Whether there are few enough fields, and sets of them, to search all orders."""
    states = prod(count + 1 for count in Counter(wanted).values())
    return len(wanted) <= MOST_WEIGHED and states <= MOST_STATES


def _best(wanted: Sequence[Footprint], unit: int) -> list[int]:
    """Return the best order; of several, the one that is most like the declared one.

    The size of the struct is a multiple of `unit`.  A dynamic program: the bytes that some
    fields need depend on how many of each kind they are, and on where they begin modulo
    `unit`, not on the order of those before them.
    """
    kinds = [*dict.fromkeys(wanted)]

    @cache
    def rest(left: tuple[int, ...], end: int) -> int:
        """Return the size that members need from `end` on; `left` are how many of each kind."""
        return min(
            (
                grown + rest(_without(left, number), (end + grown) % unit)
                for number, count in enumerate(left)
                if count
                for grown in (_after(kinds[number], end),)
            ),
            default=0,
        )

    # Each place gets the first field, as declared, with which the least size can be reached.
    left = tuple(Counter(wanted)[kind] for kind in kinds)
    goal = round_up(unit, rest(left, 0))
    numbers = [*range(len(wanted))]
    order: list[int] = []
    end = 0

    def reaches_goal(number: int) -> bool:
        then = end + _after(wanted[number], end)
        others = _without(left, kinds.index(wanted[number]))
        return round_up(unit, then + rest(others, then % unit)) == goal

    while numbers:
        number = next(filter(reaches_goal, numbers))
        order.append(number)
        numbers.remove(number)
        left = _without(left, kinds.index(wanted[number]))
        end += _after(wanted[number], end)
    return order


def _good(wanted: Sequence[Footprint]) -> list[int]:
    """Return a greedy order: next is the field that leaves least padding before it.

    Of several, it is the one with the largest alignment.
    """
    # Each place gets the best of the fields that are left.
    numbers = [*range(len(wanted))]
    order: list[int] = []
    end = 0
    while numbers:
        number = min(numbers, key=lambda n: (_gap(wanted[n], end), -wanted[n].align))
        end += _after(wanted[number], end)
        order.append(number)
        numbers.remove(number)
    return order


def _gap(wanted: Footprint, end: int) -> int:
    """Return the padding before a field that comes behind `end`."""
    return round_up(wanted.align, end) - end


def _after(wanted: Footprint, end: int) -> int:
    """Return the bytes that a field adds behind `end`, with the padding before it."""
    return _gap(wanted, end) + wanted.size


def _without(left: tuple[int, ...], number: int) -> tuple[int, ...]:
    """Return the counts of the kinds, with one less of a kind."""
    return (*left[:number], left[number] - 1, *left[number + 1 :])
