"""Exchange of gradients with other processes, by way of the host.

    read the gradients     one read for each segment of their arena
    compare a note         each rank's checksums, step and faults, by `all_reduce`
    call the function      the caller's, which changes the arrays in place
    check, write back      one write for each segment

A fault of one rank is raised on all ranks, at the same step, before anything is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from math import isfinite
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime import ArgumentError, Vector, f16, f32
from kerngen.train.arena import Array, Layout, Span, cut
from kerngen.train.errors import ExchangeError, NonFiniteError, TornStateError
from kerngen.train.group import Exchange, ProcessGroup, exchange
from kerngen_kernels import half

Wire: TypeAlias = Literal["f32", "f16"]
"""The type of the numbers that an exchange gets."""

WIRES: Final[Mapping[str, type[np.floating[Any]]]] = {
    "f32": np.float32,
    "f16": np.float16,
}

_MOST: Final = 1 << 20
"""Checksums are reduced to less than this: `all_reduce` adds them as f32, exactly."""


@final
@dataclass(frozen=True, slots=True)
class Note:
    """A rank's message to the others at each step, as f32 numbers.

    `layout` and `origin` are checksums: of parameters and optimizer, and of the state that
    the rank began from.  `wire` is 32 or 16, the bits of a number that it exchanges.
    `torn` is 1 if its gradients belong to no single loss; `wrong` counts the parameters
    whose gradients are not finite, and `first` is the number of the first one.
    """

    layout: int
    step: int
    origin: int
    wire: int
    torn: int
    wrong: int
    first: int


_SAME: Final = {
    "layout": (
        "has other parameters, another optimizer or other segments than rank 0. All ranks "
        "need the same network, the same options of Trainer, and equal adapters."
    ),
    "step": "is before step {}, rank 0 before step {}. Load the same checkpoint on all.",
    "origin": (
        "began from another state than rank 0. Draw the parameters from the same seed on "
        "all ranks, or load the same checkpoint."
    ),
    "wire": "exchanges float{}, rank 0 float{}. Pass the same 'wire' on all ranks.",
}
"""The fields of a note in which all ranks must agree, and the error for one that differs."""

_MOST_SQUARES: Final = 1e38
"""A sum of squares below this is finite in f32, whose largest number is 3.4e38."""
_PIECE: Final = 1 << 16
"""Elements of a pass over an array: they stay in the processor's cache."""
_NOTHING: Final = "Nothing was changed."


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """Checksums that must be the same on all ranks: of the layout, and of the start."""

    layout: int
    origin: int


def identity_of(
    layout: Layout,
    options: Sequence[object],
    arrays: Sequence[Mapping[str, Array]],
) -> Identity:
    """Return the checksums of a layout, and of a trainer's initial state."""
    about = zlib.crc32(repr((*options, layout.segments, [*layout.places])).encode())
    for place in layout.places.values():
        about = zlib.crc32(repr(place.shape).encode(), about)
    origin = 0
    for group in arrays:
        for array in group.values():
            origin = zlib.crc32(np.ascontiguousarray(array).data, origin)
    return Identity(about % _MOST, origin % _MOST)


@final
@dataclass(frozen=True, slots=True)
class Exchanged:
    """The exchanged gradients, segment by segment, and a bound on their sum of squares.

    `total` is the sum itself if the trainer is sharded, else the largest square times the
    number of elements.
    """

    arrays: list[NDArray[Any]]
    total: float

    @property
    def is_bounded(self) -> bool:
        """Whether the sum of squares is finite in f32, too."""
        return self.total < _MOST_SQUARES


def check_wire(wire: str) -> None:
    """Refuse an unknown type for exchanged gradients."""
    if wire not in WIRES:
        raise ArgumentError(f"exchange: wire is {wire!r}; expected 'f32' or 'f16'.")


@final
class Exchanger:
    """Exchanges gradients through the host, in arrays that it reuses."""

    def __init__(
        self,
        layout: Layout,
        group: ProcessGroup | None,
        held: Sequence[Span],
    ) -> None:
        """Allocate nothing yet; `held` are the spans that this rank needs of the result."""
        self._layout = layout
        self._held = held
        self._is_sharded = [*held] != layout.whole
        self._group = group
        self._names = list(layout.places)
        self._arrays: dict[str, list[NDArray[Any]]] = {}
        self._failure = ""

    def run(
        self,
        function: Exchange,
        segments: Sequence[Vector[f32]],
        *,
        wire: Wire,
        step: int,
        fault: str,
        identity: Identity,
    ) -> Exchanged:
        """Return the exchanged gradients; nothing on the device is changed.

        `fault` is why this rank's gradients are torn, or "".

        Raises:
            NonFiniteError: If the gradients of any rank are not finite.
            TornStateError: If the gradients of any rank are torn.
            ExchangeError: If an exchange fails, or ranks don't belong together.
        """
        where = f"exchange, before step {step}"
        if self._failure:
            raise ExchangeError(f"{where}: an earlier one failed. {self._failure}")
        arrays = self._read(segments, wire)
        wrong = [] if fault else self._wrong(arrays)
        note = Note(
            layout=identity.layout,
            step=step,
            origin=identity.origin,
            wire=8 * np.dtype(WIRES[wire]).itemsize,
            torn=bool(fault),
            wrong=len(wrong),
            first=self._names.index(wrong[0]) if wrong else 0,
        )
        try:
            self._compare(where, note)
            if fault:
                # Without a group there are no notes: NaN makes the other ranks raise, too.
                for array in arrays:
                    array.fill(np.nan)
            exchange(function, arrays, where, self._group)
        except ExchangeError as error:
            # A function that did not return in time may still write to the arrays.
            self._failure, self._arrays = str(error), {}
            raise
        if fault:
            raise TornStateError(f"{where}: {fault}. {_NOTHING}")
        return self._exchanged(where, arrays)

    def _exchanged(self, where: str, arrays: Sequence[NDArray[Any]]) -> Exchanged:
        """Return the parts that this rank has; raise if they are not finite."""
        parts = [arrays[span.segment][span.start : span.stop] for span in self._held]
        if self._is_sharded:
            return Exchanged(parts, self._total(where, parts))
        peak = _peak(arrays)
        if not isfinite(peak):
            raise NonFiniteError(
                f"{where}: the exchanged gradients are not finite, of "
                f"{', '.join(map(repr, self._wrong(arrays)[:5]))}. {_NOTHING}"
            )
        return Exchanged(parts, peak**2 * sum(part.size for part in parts))

    def _total(self, where: str, parts: Sequence[NDArray[Any]]) -> float:
        """Return the sum of the squares of all ranks' parts, in the same order on each."""
        assert self._group is not None
        own = sum(map(_sum_squares, parts))
        # `rows` are f32: a float64 is sent as its f32 value and the rest.
        high = np.float32(own) if own < _MOST_SQUARES else np.float32(np.inf)
        low = own - float(high) if np.isfinite(high) else 0.0
        rows = self._group.rows(np.array([high, low], np.float32), where)
        total = float(rows.astype(np.float64).sum())
        if not total < _MOST_SQUARES:
            raise NonFiniteError(
                f"{where}: the squares of the exchanged gradients add up to {total}. "
                f"{_NOTHING}"
            )
        return total

    def _read(self, segments: Sequence[Vector[f32]], wire: Wire) -> list[NDArray[Any]]:
        """Read the gradients into arrays that are reused, rounded to f16 if so wired."""
        if wire not in self._arrays:
            lengths = self._layout.segments
            self._arrays[wire] = [np.empty(n, WIRES[wire]) for n in lengths]
        for segment, array in zip(segments, self._arrays[wire], strict=True):
            sent = segment if wire == "f32" else half.narrow(segment)
            sent.numpy(out=array)
        return self._arrays[wire]

    def _compare(self, where: str, own: Note) -> None:
        """Compare the notes of all ranks; raise the same error on all for a fault of one.

        That is before the gradients are exchanged.
        """
        if self._group is None:
            return
        rows = self._group.rows(np.array(astuple(own), np.float32), where)
        notes = [Note(*map(int, row)) for row in rows.tolist()]
        for rank, note in enumerate(notes):
            for name, text in _SAME.items():
                is_, expected = getattr(note, name), getattr(notes[0], name)
                if is_ != expected:
                    raise ExchangeError(
                        f"{where}: rank {rank} {text.format(is_, expected)}"
                    )
        torn = [str(rank) for rank, note in enumerate(notes) if note.torn]
        if torn:
            raise TornStateError(
                f"{where}: an error or Ctrl-C left the gradients of rank "
                f"{', '.join(torn)} half written, so they belong to no single loss. "
                f"{_NOTHING}"
            )
        found = [
            f"rank {rank}, of {self._named(note)}"
            for rank, note in enumerate(notes)
            if note.wrong
        ]
        if found:
            raise NonFiniteError(
                f"{where}: gradients are not finite on {'; '.join(found)}. {_NOTHING}"
            )

    def _named(self, note: Note) -> str:
        others = f" and {note.wrong - 1} more" if note.wrong > 1 else ""
        return f"'{self._names[note.first]}'{others}"

    def _wrong(self, arrays: Sequence[NDArray[Any]]) -> list[str]:
        """Return the names of parameters whose gradients are not all finite."""
        if isfinite(_peak(arrays)):
            return []
        return [
            name
            for name, place in self._layout.places.items()
            if not isfinite(_peak([cut(arrays, place)]))
        ]


def write_back(parts: Sequence[Vector[f32]], arrays: Sequence[NDArray[Any]]) -> None:
    """Overwrite the gradients with arrays that were exchanged."""
    for part, array in zip(parts, arrays, strict=True):
        if array.dtype == np.float16:
            half.widen(part.ctx.vector(array, f16), out=part)
        else:
            part.copy_from(array)


def _sum_squares(array: NDArray[Any]) -> float:
    """Return the sum of squares in float64, of pieces, so that no copy is large."""
    return sum(
        float(np.square(array[at : at + _PIECE], dtype=np.float64).sum())
        for at in range(0, array.size, _PIECE)
    )


def _peak(arrays: Sequence[NDArray[Any]]) -> float:
    """Return the largest magnitude, or NaN if one is NaN."""
    return float(np.max([*map(_peak_of, arrays)]))


def _peak_of(array: NDArray[Any]) -> float:
    """Return the largest magnitude of an array, or NaN, by integers.

    Without their signs, floats are in the order of their bits, and NaNs are above infinity.
    NumPy compares float16 one by one: the integers take a 25th of the time.
    """
    bits = array.reshape(-1).view(f"u{array.itemsize}")
    magnitude = np.array(np.iinfo(bits.dtype).max >> 1, bits.dtype)
    peaks = [
        (bits[at : at + _PIECE] & magnitude).max() for at in range(0, bits.size, _PIECE)
    ]
    return float(np.max(peaks).view(array.dtype))
