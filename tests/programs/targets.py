"""What a statement writes of an element: `p[i].trail[k].x = ...;`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kerngen.syntax import ast

from .composites import LETTERS
from .memory import Fixed, Memory, Path, Record, parts_of

Step: TypeAlias = int | str
"""The number of a part, or the index that ranges over all of them."""


@dataclass
class Spot:
    """A part of an element, and the ranges of the indices that lead to it."""

    memory: Memory
    steps: list[Step] = field(default_factory=list[Step])
    in_arrays: list[Step] = field(default_factory=list[Step])
    ranges: dict[str, int] = field(default_factory=dict[str, int])
    is_component: bool = False

    def path(self, at: dict[str, Any]) -> Path:
        """Return where the part is, for values of the indices."""
        return tuple(step if isinstance(step, int) else at[step] for step in self.steps)

    def enter(self, step: Step, number: int = 0) -> None:
        """Go into a part; all that an index ranges over are of one type."""
        self.memory = parts_of(self.memory)[step if isinstance(step, int) else number]
        self.steps.append(step)


def spot_of(memory: Memory, target: ast.Expr) -> Spot:
    """Return what the members of a target lead to, and the subscripts behind them."""
    spot = Spot(memory)
    for part in ast.chain_of(target):
        match part:
            case ast.Member(member=member) if isinstance(spot.memory, Record):
                spot.enter(spot.memory.place(member.name))
            case ast.Member(member=member):
                spot.is_component = True
                spot.enter(LETTERS[member.name])
            case ast.Subscript(base=ast.Member(), subscripts=subscripts):
                for subscript in subscripts:
                    _into_array(spot, subscript)
            case _:
                pass
    return spot


def _into_array(spot: Spot, subscript: ast.Expr) -> None:
    assert isinstance(spot.memory, Fixed)
    step: Step
    match subscript:
        case ast.Number(value=value):
            step = int(value)
        case ast.Name(name=name):
            step = name
            spot.ranges[name] = spot.memory.length
        case _:
            raise AssertionError(subscript)
    spot.in_arrays.append(step)
    spot.enter(step)
