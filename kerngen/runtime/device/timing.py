"""Timing on the device's own clock: timestamps around compute passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.device import gpu
from kerngen.runtime.device.native import wait
from kerngen.runtime.errors import StateError

Ticks: TypeAlias = NDArray[np.uint64]
"""The begin and the end of each pass, in the device's ticks."""

_BYTES = 16
"""Bytes of a pass: two timestamps, its begin and its end, each a u64."""


@final
class Span:
    """The duration of a `timed()` block."""

    __slots__ = ("_read", "_seconds")

    def __init__(self) -> None:
        """Begin; the block is still open."""
        self._read: Callable[[], float] | None = None
        self._seconds: float | None = None

    def finish(self, read: Callable[[], float]) -> None:
        """Note that the block has ended; `read` waits, and returns the block's seconds."""
        self._read = read

    @property
    def seconds(self) -> float:
        """The time from the block's begin to its end; waits for the device.

        Raises StateError within the block, and if an error lost what it recorded.
        """
        if self._seconds is None:
            if self._read is None:
                raise StateError("seconds: the timed() block has not ended yet.")
            self._seconds = self._read()
        return self._seconds

    def __repr__(self) -> str:
        """Return the seconds, if they are known."""
        known = "not read yet" if self._seconds is None else f"{self._seconds} s"
        return f"Span({known})"


@final
class TimestampSlots:
    """A query set with its buffers, with room for the timestamps of a number of passes.

    Passes store timestamps in the query set; `resolve` copies them to a buffer, and on to one
    that the host can map:

        query set:  begin 0, end 0, begin 1, end 1, ...  ->  resolved  ->  readable
    """

    def __init__(self, device: gpu.Device, passes: int) -> None:
        """Make room for `passes` passes."""
        size = passes * _BYTES
        self._device = device
        try:
            self._queries = device.create_query_set(type="timestamp", count=2 * passes)
            self._resolved = device.create_buffer(
                size=size, usage=gpu.QUERY_RESOLVE | gpu.COPY_SRC
            )
            self._readable = device.create_buffer(
                size=size, usage=gpu.MAP_READ | gpu.COPY_DST
            )
        except Exception as error:
            raise gpu.translate(error, "to make room for timestamps") from error
        self.room = passes
        self.taken = 0
        self._ticks: Ticks | None = None

    def take(self) -> gpu.Descriptor:
        """Return the `timestamp_writes` that a new compute pass is begun with."""
        begin = 2 * self.taken
        self.taken += 1
        self.room -= 1
        return {
            "query_set": self._queries,
            "beginning_of_pass_write_index": begin,
            "end_of_pass_write_index": begin + 1,
        }

    def resolve(self, encoder: gpu.Encoder, first: int, passes: int) -> None:
        """Record commands that make the timestamps of `passes` passes from `first` on readable.

        Only these: timestamps of lost passes were never stored, and a device may wait for them
        for ever.
        """
        buffer, size = self._resolved, passes * _BYTES
        encoder.resolve_query_set(self._queries, 2 * first, 2 * passes, buffer, 0)
        encoder.copy_buffer_to_buffer(buffer, 0, self._readable, first * _BYTES, size)

    def read(self) -> Ticks:
        """Wait for all submitted passes; return the ticks at the begin and end of each."""
        if self._ticks is None:
            memory, size = self._readable, self.taken * _BYTES
            try:
                wait(self._device, memory.map_async("READ_NOSYNC", 0, size))
                view = memory.read_mapped(0, size, copy=False)
                self._ticks = np.frombuffer(view, np.uint64).reshape(-1, 2).copy()
                memory.unmap()
            except Exception as error:
                raise gpu.translate(error, "to read timestamps") from error
        return self._ticks


@final
class Stamps:
    """The timestamps of the passes of one submission, from the next free slot on.

    They can be read once they are `submitted`; for all else callers hold the context's lock.
    """

    def __init__(self, slots: TimestampSlots) -> None:
        """Begin at the first free slot; only one `Stamps` uses the slots at a time."""
        self.submitted = False
        self._slots = slots
        self._first = slots.taken
        self._passes = 0

    @property
    def room(self) -> int:
        """The number of further passes that there is room for."""
        return self._slots.room

    def next_pass(self) -> gpu.Descriptor:
        """Return the `timestamp_writes` that a new compute pass is begun with."""
        self._passes += 1
        return self._slots.take()

    def resolve(self, encoder: gpu.Encoder) -> None:
        """Record, after the passes, commands that make their timestamps readable."""
        self._slots.resolve(encoder, self._first, self._passes)

    def read(self) -> Ticks:
        """Wait for the passes; return the ticks at the begin and end of each."""
        if not self.submitted:
            raise StateError(
                "The recorded work was lost by an error, so nothing was timed."
            )
        return self._slots.read()[self._first : self._first + self._passes]


def within_timed(what: str) -> StateError:
    """Return the error for an operation that does not fit the single pass of `timed()`."""
    return StateError(
        f"timed(): the block needs {what}, which would end its compute pass. Do that "
        f"before the block or after it."
    )
