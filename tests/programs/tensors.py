"""Arrays of the interpreter: a type, a shape and a flat list of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .numbers import UndecidedError, Value, leaf, to_half


class IllegalCallError(Exception):
    """The language refuses these arguments: a ShapeError of the runtime."""


@dataclass
class Array:
    """A tensor, a let or an output; the last axis is the fastest."""

    type: str
    shape: tuple[int, ...]
    cells: list[Value]
    half: bool = False
    """Whether the cells are stored as f16; they are read as f32."""

    @classmethod
    def of(cls, array: Any, element: str) -> Array:
        """Take over a NumPy array."""
        made = cls.empty(tuple(array.shape), element)
        flat: list[Any] = array.reshape(-1).tolist()
        made.cells = [leaf(x) for x in flat] if made.type == "f32" else flat
        return made

    @classmethod
    def empty(cls, shape: tuple[int, ...], element: str) -> Array:
        """Make an output that nothing has been written to."""
        half = element == "f16"
        return cls("f32" if half else element, shape, [], half)

    @property
    def element(self) -> str:
        """The type that the cells are stored in."""
        return "f16" if self.half else self.type

    def write(self, cells: list[Value]) -> None:
        """Replace every cell at once."""
        if self.half:
            cells = [to_half(x) if isinstance(x, tuple) else x for x in cells]
        self.cells = cells

    def read(self, places: Sequence[int]) -> Value:
        """Read one cell; `places` lie inside."""
        flat = 0
        for place, length in zip(places, self.shape, strict=True):
            flat = flat * length + place
        return self.cells[flat]

    def inside(self, place: int, axis: int) -> int:
        """Return a place that must lie inside an axis."""
        if not 0 <= place < self.shape[axis]:
            raise IllegalCallError(
                f"{place} is outside of an axis of {self.shape[axis]}"
            )
        return place

    def clamped(self, place: int, axis: int) -> int:
        """Return the nearest place inside an axis, which must have one."""
        if not self.shape[axis]:
            raise IllegalCallError("a read of an empty axis")
        return min(max(place, 0), self.shape[axis] - 1)


__all__ = ["Array", "IllegalCallError", "UndecidedError"]
