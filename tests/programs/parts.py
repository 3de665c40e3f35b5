"""Reads of parts: members, elements of fixed arrays, columns and components."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from .dice import Dice
from .memory import (
    Fixed,
    Memory,
    Path,
    Record,
    is_composite,
    is_matrix,
    numbers_in,
    parts_of,
    read_as,
    scalar_of,
)
from .pieces import Piece
from .world import Index, Place, Tensor, World

if TYPE_CHECKING:
    from .grammar import Grammar

Step: TypeAlias = str | tuple[int, ...]
"""A member's name, or the lengths of an array of which an element is read."""


@dataclass(frozen=True)
class Source:
    """What parts are read of, and how it is written itself."""

    memory: Memory
    text: Callable[[], str]


def routes(memory: Memory) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield the steps to every leaf, each array once."""
    if isinstance(memory, Record):
        for name, member in memory.members:
            for steps, leaf in routes(member):
                yield (name, *steps), leaf
    elif isinstance(memory, Fixed):
        lengths: tuple[int, ...] = ()
        while isinstance(memory, Fixed):
            lengths = (*lengths, memory.length)
            memory = memory.element
        for steps, leaf in routes(memory):
            yield (lengths, *steps), leaf
    else:
        yield (), memory


@dataclass
class Parts:
    """Draws reads of parts in a world."""

    grammar: Grammar

    @property
    def world(self) -> World:
        """The program so far."""
        return self.grammar.world

    @property
    def dice(self) -> Dice:
        """Where choices come from."""
        return self.grammar.dice

    def sources(self, place: Place) -> list[Source]:
        """Return what an expression can read parts of."""
        if place.locals is not None:
            return [Source(type_, partial(str, name)) for name, type_ in place.locals]
        found = [Source(p.memory, partial(str, p.name)) for p in self.world.parameters]
        found += [self.element_of(t, place) for t in self.world.in_parts()]
        return found

    def on_host(self, type_: str) -> list[str]:
        """Return numbers in the parameters, as hosts read them."""
        return [
            f"{parameter.name}{_spelled(parameter.memory, path)}"
            for parameter in self.world.parameters
            for path, kept in numbers_in(parameter.memory)
            if read_as(kept) == type_
        ]

    def element_of(self, tensor: Tensor, place: Place) -> Source:
        """An element of a tensor."""
        return Source(tensor.memory, lambda: self.grammar.load(tensor, place).text)

    def over(self, tensor: Tensor, indices: list[Index], place: Place) -> Source:
        """An element of a tensor that uses indices bare."""
        head = self.grammar.load_over
        return Source(tensor.memory, lambda: head(tensor, indices, place).text)

    def read(
        self, type_: str, place: Place, sources: Sequence[Source] | None = None
    ) -> Piece | None:
        """A value of a type that is part of something, if there is any."""
        known = self.sources(place) if sources is None else sources
        found = [
            (source, steps, leaf)
            for source in known
            for steps, leaf in routes(source.memory)
            if _gives(read_as(leaf), type_)
        ]
        if not found:
            return None
        source, steps, leaf = self.dice.pick(found)
        text = source.text()
        for step in steps:
            if isinstance(step, str):
                text += f".{step}"
            else:
                listed = ", ".join(self.subscript(n, place) for n in step)
                text += f"[{listed}]"
        return Piece(self._narrowed(text, read_as(leaf), type_, place))

    def _narrowed(self, text: str, have: str, want: str, place: Place) -> str:
        """Take the part of a value that has the type wanted."""
        if is_matrix(have) and have != want:
            text += f"[{self.subscript(len(parts_of(have)), place)}]"
            have = str(parts_of(have)[0])
        if have == want and (not is_composite(have) or is_matrix(have)):
            return text
        if have == want and not self.dice.chance(25):
            return text
        width = len(parts_of(have))
        if not is_composite(want) and self.dice.chance(35):
            return f"{text}[{self.subscript(width, place)}]"
        letters = self.dice.pick(("xyzw", "xyzw", "rgba"))[:width]
        count = len(parts_of(want)) or 1
        return f"{text}.{''.join(self.dice.pick(letters) for _ in range(count))}"

    def subscript(self, length: int, place: Place) -> str:
        """A subscript of something with a known length."""
        dice = self.dice
        indices = place.indices
        if place.locals is not None:
            return str(dice.below(length))
        bare = [i.name for i in indices if i.axis in _up_to(length)]
        forms: list[str] = [str(dice.below(length))]
        for name in bare:
            forms += [name, name, name, f"{length - 1} - {name}"]
        forms += [f"{i.name} % {length}" for i in indices]
        forms += [f"min({i.name}, 1)" for i in indices[:1]]
        if place.branch:
            forms += [f"{i.name} - 1" for i in indices[:1]]
        if dice.chance(6):
            return self.grammar.gather("", place)
        return dice.pick(forms)


def _spelled(memory: Memory, path: Path) -> str:
    """Return how the part at a path is written behind its root."""
    text, in_array = "", False
    for step in path:
        if isinstance(memory, Record):
            text += f".{memory.members[step][0]}"
        elif isinstance(memory, Fixed) and in_array:
            text = f"{text[:-1]}, {step}]"
        elif isinstance(memory, Fixed) or is_matrix(memory):
            text += f"[{step}]"
        else:
            text += f".{'xyzw'[step]}"
        in_array = isinstance(memory, Fixed)
        memory = parts_of(memory)[step]
    return text


def _up_to(length: int) -> tuple[str, ...]:
    return tuple(str(n) for n in range(1, length + 1))


def _gives(have: str, want: str) -> bool:
    """Whether a value has parts of a type, or the type itself."""
    if have == want:
        return True
    if scalar_of(have) != scalar_of(want) or is_matrix(want):
        return False
    return is_composite(have)


def binds(index: Index, text: str) -> bool:
    """Whether the first subscripts of a read have an index among them."""
    found = re.match(r"\w+\[([^\[\]]*)\]", text)
    return found is not None and index.name in found.group(1).split(", ")
