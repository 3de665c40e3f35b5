"""The loop of a recurrence in registers: what it carries from turn to turn, or keeps.

    let x[i, s < 9] = if s > 0 { x[i, s - 1] / 2.0 } else { a[i] };    y[i] = x[i, 8];

Here `x[i, s - 1]` becomes the local `x_before`, and `x[i, 8]` the local `x_left`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

from kerngen.ir.analysis.linear import Lengths
from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Expr, Load, LocalValue, Statement, Tensor
from kerngen.ir.staging.hoisting import Fresh
from kerngen.ir.staging.recurring import distance, fits_loop, is_last, place_read
from kerngen.ir.staging.stages import Define, Loop, LoopResult, State
from kerngen.ir.types import Scalar, ValueType
from kerngen.ir.walk import map_children

Kept: TypeAlias = tuple[LocalValue, LocalValue | None]
"""The local that has a value after the loop, and that of its turn; None for the last turn."""


@final
@dataclass(frozen=True)
class Looping:
    """The statements of a group with a loop, in which locals replace reads of the loop's lets.

    - `members`: the statements; the first `turns` of them run in every turn of the loop, the
      others after it
    - `before`: for each let that reads itself, its values of earlier turns, latest first
    - `left`: for each let and step that statements after the loop read, the local with the
      value, and the local with the step's number, or None for the last step
    """

    members: tuple[Statement, ...]
    turns: int
    before: Mapping[Tensor, tuple[LocalValue, ...]]
    left: Mapping[tuple[Tensor, Expr], Kept]

    @property
    def keeps(self) -> frozenset[Tensor]:
        """The lets of which a local must have the value in each turn, as it is read later."""
        return frozenset(self.before) | {tensor for tensor, _ in self.left}

    @property
    def places(self) -> list[Define]:
        """The stage's steps before the loop: each computes the number of a turn to capture."""
        return [Define(at, place) for (_, place), (_, at) in self.left.items() if at]

    def loop(self, now: Mapping[Tensor, LocalValue], end: int) -> Loop:
        """Return the loop of the stage.

        `now` has the local of each let's value in the current turn; `end` is the number of the
        first step behind the loop.
        """
        along = next(member.along for member in self.members if member.along)
        return Loop(
            along.axis,
            along.descending,
            max(len(before) for before in self.before.values()),
            tuple(State(now[x], before) for x, before in self.before.items()),
            tuple(
                LoopResult(kept, now[x], at) for (x, _), (kept, at) in self.left.items()
            ),
            len(self.places),
            end,
        )


def looping(
    members: Sequence[Statement], fresh: Fresh, lengths: Lengths
) -> Looping | None:
    """Return the rewritten statements of a group with a recurrence that registers can compute.

    None if no member is a recurrence, or if it has to go through memory.
    """
    loop = next((member for member in members if member.along), None)
    if loop is None or not fits_loop(loop):
        return None
    # Members with as many indices as the loop run in its turns, the others after it.
    turns = [m for m in members if len(m.indices) == len(loop.indices)]
    registers = _Registers(loop, frozenset(m.target for m in turns), fresh, lengths)
    changed = [
        *map(registers.in_turn, turns),
        *map(registers.afterwards, members[len(turns) :]),
    ]
    return Looping(tuple(changed), len(turns), registers.before, registers.left)


@final
@dataclass(frozen=True)
class _Registers:
    """Rewrites the members of a group to read its loop from registers."""

    loop: Statement
    computed: frozenset[Tensor]
    fresh: Fresh
    lengths: Lengths
    before: dict[Tensor, tuple[LocalValue, ...]] = field(
        default_factory=dict[Tensor, tuple[LocalValue, ...]]
    )
    left: dict[tuple[Tensor, Expr], Kept] = field(
        default_factory=dict[tuple[Tensor, Expr], Kept]
    )

    def in_turn(self, member: Statement) -> Statement:
        """Return a member that reads its target in earlier turns."""
        along = member.along
        if along is None:
            return member
        name, type_ = f"{member.target.name}_before", _type(member.target)
        names = [self.fresh.name(name) for _ in range(along.distance)]
        before = tuple(LocalValue(each, type_) for each in names)
        self.before[member.target] = before

        def earlier(load: Load) -> Expr | None:
            own = load.tensor == member.target
            return before[distance(load, member) - 1] if own else None

        return _replaced(member, earlier)

    def afterwards(self, member: Statement) -> Statement:
        """Return a member behind the loop that reads its results from locals."""

        def left(load: Load) -> Expr | None:
            if load.tensor not in self.computed:
                return None
            place = place_read(load, self.loop, member.indices)
            assert place is not None, "in the group because it is at one place"
            key = load.tensor, place
            if key not in self.left:
                self.left[key] = self._kept(load.tensor, place)
            return self.left[key][0]

        return _replaced(member, left)

    def _kept(self, tensor: Tensor, place: Expr) -> Kept:
        kept = LocalValue(self.fresh.name(f"{tensor.name}_left"), _type(tensor))
        if is_last(place, self.loop, self.lengths):
            return kept, None
        return kept, LocalValue(self.fresh.name(f"{tensor.name}_at"), Scalar.I32)


def _type(tensor: Tensor) -> ValueType:
    assert not isinstance(tensor.element, Struct), "lets are values"
    return tensor.element


def _replaced(member: Statement, by: Callable[[Load], Expr | None]) -> Statement:
    def visit(expr: Expr) -> Expr:
        found = by(expr) if isinstance(expr, Load) else None
        return map_children(expr, visit) if found is None else found

    return replace(member, value=visit(member.value))
