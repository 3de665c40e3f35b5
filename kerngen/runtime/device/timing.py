"""Time on the device's own clock: timestamps around compute passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.device.gpu import (
    COPY_DST,
    COPY_SRC,
    MAP_READ,
    QUERY_RESOLVE,
    Descriptor,
    Device,
    Encoder,
    translate,
)
from kerngen.runtime.device.native import wait
from kerngen.runtime.errors import StateError

Ticks: TypeAlias = NDArray[np.uint64]
"""The begin and the end of each pass, in the device's ticks."""

_BYTES = 16
"""Of a pass: two timestamps."""


@final
class Span:
    """What a `timed()` block took."""

    __slots__ = ("_read", "_seconds")

    def __init__(self) -> None:
        """Begin; the block is still open."""
        self._read: Callable[[], float] | None = None
        self._seconds: float | None = None

    def finish(self, read: Callable[[], float]) -> None:
        """Let the seconds be known from now on; `read` waits for them."""
        self._read = read

    @property
    def seconds(self) -> float:
        """The time from begin to end; waits for the device.

        Raises StateError within the block, and if an error lost what it recorded.
        """
        if self._seconds is None:
            if self._read is None:
                raise StateError("seconds: the timed() block has not ended yet.")
            self._seconds = self._read()
        return self._seconds

    def __repr__(self) -> str:
        """Say how long, if that is known."""
        known = "not read yet" if self._seconds is None else f"{self._seconds} s"
        return f"Span({known})"


@final
class Slots:
    """Room for the timestamps of some passes, of one submission or of several."""

    def __init__(self, device: Device, passes: int) -> None:
        """Make room for `passes` passes."""
        size = passes * _BYTES
        self._device = device
        try:
            self._queries = device.create_query_set(type="timestamp", count=2 * passes)
            self._resolved = device.create_buffer(
                size=size, usage=QUERY_RESOLVE | COPY_SRC
            )
            self._readable = device.create_buffer(size=size, usage=MAP_READ | COPY_DST)
        except Exception as error:
            raise translate(error, "to make room for timestamps") from error
        self.room = passes
        self.taken = 0
        self._ticks: Ticks | None = None

    def take(self) -> Descriptor:
        """Return what lets one more compute pass write its two timestamps."""
        begin = 2 * self.taken
        self.taken += 1
        self.room -= 1
        return {
            "query_set": self._queries,
            "beginning_of_pass_write_index": begin,
            "end_of_pass_write_index": begin + 1,
        }

    def resolve(self, encoder: Encoder, first: int, passes: int) -> None:
        """Record what makes the timestamps of such passes readable, and no others.

        Those that an error lost were never written: a device may wait for them for ever.
        """
        buffer, size = self._resolved, passes * _BYTES
        encoder.resolve_query_set(self._queries, 2 * first, 2 * passes, buffer, 0)
        encoder.copy_buffer_to_buffer(buffer, 0, self._readable, first * _BYTES, size)

    def read(self) -> Ticks:
        """Wait for all passes that were submitted, after the last of them."""
        if self._ticks is None:
            memory, size = self._readable, self.taken * _BYTES
            try:
                wait(self._device, memory.map_async("READ_NOSYNC", 0, size))
                view = memory.read_mapped(0, size, copy=False)
                self._ticks = np.frombuffer(view, np.uint64).reshape(-1, 2).copy()
                memory.unmap()
            except Exception as error:
                raise translate(error, "to read timestamps") from error
        return self._ticks


@final
class Stamps:
    """The timestamps of passes of one submission, the next of some slots.

    They can be read once they are `submitted`; all else needs the context's lock.
    """

    def __init__(self, slots: Slots) -> None:
        """Begin where the slots are free; one `Stamps` takes them at a time."""
        self.submitted = False
        self._slots = slots
        self._first = slots.taken
        self._passes = 0

    @property
    def room(self) -> int:
        """How many more passes there is room for."""
        return self._slots.room

    def next_pass(self) -> Descriptor:
        """Return what lets one more compute pass write its two timestamps."""
        self._passes += 1
        return self._slots.take()

    def resolve(self, encoder: Encoder) -> None:
        """Record, behind the passes, what makes their timestamps readable."""
        self._slots.resolve(encoder, self._first, self._passes)

    def read(self) -> Ticks:
        """Wait for the passes; return the ticks at the begin and the end of each."""
        if not self.submitted:
            raise StateError(
                "The recorded work was lost by an error, so nothing was timed."
            )
        return self._slots.read()[self._first : self._first + self._passes]


def within_timed(what: str) -> StateError:
    """Return the error of a block that holds more than one pass can."""
    return StateError(
        f"timed(): the block needs {what}, which would end its compute pass. Do that "
        f"before the block or after it."
    )
