"""Arrays of the interpreter: a type, a shape and a flat list of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .memory import Memory, blank, is_half, mapped, parts_of, read_as, replaced
from .numbers import UndecidedError, leaf, to_half


class IllegalCallError(Exception):
    """The language refuses these arguments: a ShapeError of the runtime."""


@dataclass(frozen=True)
class Given:
    """An argument: plain numbers, or tuples of them."""

    memory: Memory
    shape: tuple[int, ...]
    cells: list[Any]


@dataclass
class Array:
    """A tensor, a let or an output; the last axis is the fastest."""

    memory: Memory
    shape: tuple[int, ...]
    cells: list[Any]

    @classmethod
    def of(cls, memory: Memory, shape: tuple[int, ...], cells: Sequence[Any]) -> Array:
        """Take over plain numbers, or tuples of them."""
        return cls(memory, shape, [taken(memory, cell) for cell in cells])

    @classmethod
    def empty(cls, shape: tuple[int, ...], memory: Memory) -> Array:
        """Make an output that nothing has been written to."""
        count = 1
        for length in shape:
            count *= length
        return cls(memory, shape, [blank(memory)] * count)

    @property
    def type(self) -> Memory:
        """What an element is read as: the halves of a struct only number by number."""
        return read_as(self.memory) if isinstance(self.memory, str) else self.memory

    def write(self, place: int, path: Sequence[int], value: Any) -> None:
        """Replace one part of one cell."""
        part = self.memory
        for step in path:
            part = parts_of(part)[step]
        cell = self.cells[place]
        self.cells[place] = replaced(cell, path, mapped(part, value, _stored))

    def write_all(self, values: Sequence[Any]) -> None:
        """Replace every cell at once."""
        memory = self.memory
        if isinstance(memory, str) and is_half(memory):
            values = [mapped(memory, value, _stored) for value in values]
        self.cells = list(values)

    def flat(self, places: Sequence[int]) -> int:
        """Return which cell is meant; `places` lie inside."""
        flat = 0
        for place, length in zip(places, self.shape, strict=True):
            flat = flat * length + place
        return flat

    def read(self, places: Sequence[int]) -> Any:
        """Read one cell."""
        return self.cells[self.flat(places)]


def inside(place: int, length: int) -> int:
    """Return a place that must lie inside an axis."""
    if not 0 <= place < length:
        raise IllegalCallError(f"{place} is outside of an axis of {length}")
    return place


def clamped(place: int, length: int) -> int:
    """Return the nearest place inside an axis, which must have one."""
    if not length:
        raise IllegalCallError("a read of an empty axis")
    return min(max(place, 0), length - 1)


def taken(memory: Memory, value: Any) -> Any:
    """Return an argument as the interpreter computes with it."""
    return mapped(memory, value, lambda kept, x: leaf(x) if kept[0] == "f" else int(x))


def _stored(kept: str, value: Any) -> Any:
    return to_half(value) if kept == "f16" else value


__all__ = ["Array", "IllegalCallError", "UndecidedError", "clamped", "inside", "taken"]
