"""Paths to values in structs: as a kernel writes them, and as Python follows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.types import Matrix, Scalar, Vector, scalar_of

Step: TypeAlias = Callable[[Any, int], Any]
"""Goes on from a value, for the element `i` of a tensor."""


@dataclass(frozen=True)
class Path:
    """What follows a name of a kernel to reach a value."""

    text: str
    steps: tuple[Step, ...]
    type: Scalar

    def follow(self, value: Any, i: int) -> Any:
        """Return what it leads to."""
        for step in self.steps:
            value = step(value, i)
        return value


def path_in(type_: MemoryType, random: Random, *, is_target: bool = False) -> Path:
    """Draw a path to a scalar, or to what may be a target."""
    text, steps = "", list[Step]()
    while not isinstance(type_, Leaf):
        if isinstance(type_, Struct):
            member = random.choice(type_.members)
            text += f".{member.name}"
            steps.append(_field(member.name))
            type_ = member.type
            continue
        subscripts: list[str] = []
        while isinstance(type_, FixedArray):
            subscript, step = _subscript(type_.length, random, is_fixed=is_target)
            subscripts.append(subscript)
            steps.append(step)
            type_ = type_.element
        text += f"[{', '.join(subscripts)}]"
    return _in_leaf(
        type_, Path(text, tuple(steps), scalar_of(type_.type)), random, is_target
    )


def _in_leaf(leaf: Leaf, path: Path, random: Random, is_target: bool) -> Path:
    lengths: tuple[int, ...] = ()
    if isinstance(leaf.type, Matrix) and not is_target:
        lengths = leaf.type.columns, leaf.type.rows
    elif isinstance(leaf.type, Vector):
        lengths = (leaf.type.width,)
    text, steps = path.text, path.steps
    for number, length in enumerate(lengths, 1):
        subscript, step = _subscript(length, random, is_fixed=True)
        is_last = number == len(lengths)
        is_named = is_last and (is_target or random.random() < 0.5)
        text += f".{'xyzw'[int(subscript)]}" if is_named else f"[{subscript}]"
        steps = (*steps, step)
    return Path(text, steps, path.type)


def _field(name: str) -> Step:
    return lambda value, _: getattr(value, name)


def _subscript(length: int, random: Random, *, is_fixed: bool) -> tuple[str, Step]:
    """Draw a constant subscript, or one that goes with the index `i`."""
    number = random.randrange(length)
    if is_fixed or random.random() < 0.5:
        return f"{number}", lambda value, _: value[number]
    text = f"(i + {number}) % {length}"
    return text, lambda value, i: value[(i + number) % length]
