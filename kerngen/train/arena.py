"""Arenas: many named tensors in one buffer, which one dispatch can update.

    segment 0   │ weight ... 0 0 │ bias 0 0 0 0 │     each tensor at a multiple of 256 bytes

Any adapter can bind a tensor at such an offset; the gaps hold zeros, which every update
leaves as they are.  An arena is one buffer as long as the adapter can bind it whole; above
that it is several segments, and no tensor is in two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime import Context, LimitError, ShapeError, Tensor, Vector, f32
from kerngen.runtime.calls.unknown import unknown_name
from kerngen.runtime.values.shapes import round_up
from kerngen.train.names import Named

Array: TypeAlias = NDArray[np.float32]

ALIGNMENT = 64
"""Tensors start at multiples of this many elements: 256 bytes."""

_BYTES = f32.DTYPE.itemsize


@final
@dataclass(frozen=True, slots=True)
class Place:
    """The place of a tensor: `length` elements from `start` on, in a segment."""

    segment: int
    start: int
    shape: tuple[int, ...]

    @property
    def length(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def stop(self) -> int:
        """The position where the next tensor may start."""
        return self.start + round_up(self.length, ALIGNMENT)


@final
@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive elements of a segment."""

    segment: int
    start: int
    stop: int

    def within(self, held: Sequence[Span]) -> Span | None:
        """Return the part of the span that is in the held span of its segment, or None."""
        own = held[self.segment]
        start, stop = max(self.start, own.start), min(self.stop, own.stop)
        return Span(self.segment, start, stop) if start < stop else None


@final
@dataclass(frozen=True)
class Layout:
    """The place of each tensor by name, in order, and the lengths of the segments."""

    places: Mapping[str, Place]
    segments: tuple[int, ...]

    @cached_property
    def whole(self) -> list[Span]:
        """Return spans that cover all segments."""
        return [Span(n, 0, length) for n, length in enumerate(self.segments)]

    def share(self, rank: int, size: int) -> list[Span]:
        """Return the part of each segment that belongs to a rank, in equal parts."""
        return [
            Span(n, length // size * rank, length // size * (rank + 1))
            for n, length in enumerate(self.segments)
        ]

    def spans(self, names: Sequence[str]) -> list[Span]:
        """Return the fewest spans that cover the named tensors.

        Raises:
            UnknownNameError: If a name is unknown.
            ShapeError: If a name comes twice.
        """
        for name in names:
            if name not in self.places:
                raise unknown_name("Trainer", "parameter", name, self.places)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ShapeError(f"The parameter '{twice}' is named twice.")
        if len(names) == len(self.places):
            return self.whole
        chosen = set(names)
        return _joined(p for name, p in self.places.items() if name in chosen)


def lay_out(
    shapes: Mapping[str, tuple[int, ...]], most_bytes: int, parts: int = 1
) -> Layout:
    """Return the layout of tensors of these shapes, one after the other.

    Args:
        shapes: The shapes by name, in the order of the tensors in the segments.
        most_bytes: The largest size of a segment.
        parts: The number of equal parts into which segments can be cut, such as ranks; each
            part is aligned as a tensor is.

    Raises:
        ShapeError: If a tensor has no elements.
        LimitError: If a tensor alone is too large.
    """
    multiple = ALIGNMENT * parts
    most = most_bytes // _BYTES // multiple * multiple
    places: dict[str, Place] = {}
    segments: list[int] = [0]
    for name, shape in shapes.items():
        length = math.prod(shape)
        _check_length(name, shape, length, most)
        if segments[-1] + round_up(length, ALIGNMENT) > most:
            segments.append(0)
        place = Place(len(segments) - 1, segments[-1], shape)
        places[name], segments[-1] = place, place.stop
    return Layout(places, tuple(round_up(each, multiple) for each in segments))


def _check_length(name: str, shape: tuple[int, ...], length: int, most: int) -> None:
    if not length:
        raise ShapeError(f"The parameter '{name}' has shape {shape}: it is empty.")
    if round_up(length, ALIGNMENT) > most:
        raise LimitError(
            f"The parameter '{name}' of shape {shape} takes {length * _BYTES} bytes; "
            f"the adapter binds at most {most * _BYTES}. Split it into several."
        )


def _joined(places: Iterator[Place]) -> list[Span]:
    """Return the spans of places, those that follow each other as one."""
    spans: list[Span] = []
    for place in places:
        last = spans[-1] if spans else None
        if last and (last.segment, last.stop) == (place.segment, place.start):
            spans[-1] = Span(last.segment, last.start, place.stop)
        else:
            spans.append(Span(place.segment, place.start, place.stop))
    return spans


@final
class Arena:
    """Named f32 tensors in shared buffers."""

    def __init__(
        self,
        ctx: Context,
        layout: Layout,
        held: Sequence[Span] | None = None,
    ) -> None:
        """Allocate zeros, for all of the layout or for one `held` span of each segment."""
        self.layout = layout
        self.held = layout.whole if held is None else [*held]
        self.segments: tuple[Vector[f32], ...] = tuple(
            ctx.zeros(span.stop - span.start, f32) for span in self.held
        )
        named = layout.places.items() if self.is_whole else ()
        self.tensors: Named[Tensor[f32, Any]] = Named(
            {name: self._view(place) for name, place in named}
        )

    @property
    def is_whole(self) -> bool:
        """Whether the arena has all of the layout; a part has no named tensors."""
        return self.held == self.layout.whole

    def part(self, span: Span) -> Vector[f32]:
        """Return a view of a span; of the whole segment if the span covers it."""
        segment, held = self.segments[span.segment], self.held[span.segment]
        if span == held:
            return segment
        return segment.rows(span.start - held.start, span.stop - held.start)

    def read_segments(self) -> list[Array]:
        """Wait for the device and return all segments; parts not held are zeros."""
        arrays = [np.zeros(length, np.float32) for length in self.layout.segments]
        for segment, span in zip(self.segments, self.held, strict=True):
            segment.numpy(out=arrays[span.segment][span.start : span.stop])
        return arrays

    def read(self) -> dict[str, Array]:
        """Wait for the device and return copies of all tensors."""
        return self.named(self.read_segments())

    def named(self, segments: Sequence[Array]) -> dict[str, Array]:
        """Return copies of all tensors in segments that were read before."""
        places = self.layout.places
        return {name: cut(segments, place).copy() for name, place in places.items()}

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Overwrite all tensors: one array of its shape for each name."""
        segments = [np.zeros(length, np.float32) for length in self.layout.segments]
        for name, place in self.layout.places.items():
            cut(segments, place)[...] = arrays[name]
        for segment, span in zip(self.segments, self.held, strict=True):
            segment.copy_from(segments[span.segment][span.start : span.stop])

    def clear(self) -> None:
        """Overwrite all tensors with zeros."""
        for segment in self.segments:
            segment.clear()

    def _view(self, place: Place) -> Tensor[f32, Any]:
        segment = self.segments[place.segment]
        part = segment.rows(place.start, place.start + place.length)
        return part.reshape(place.shape)


def cut(segments: Sequence[Array], place: Place) -> Array:
    """Return a view of a tensor's elements in arrays of the segments."""
    flat = segments[place.segment][place.start : place.start + place.length]
    return flat.reshape(place.shape)
