"""Time on the device's own clock: timestamps around compute passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import StateError
from kerngen.runtime.gpu import (
    COPY_DST,
    COPY_SRC,
    MAP_READ,
    QUERY_RESOLVE,
    Descriptor,
    Device,
    Encoder,
    translate,
)

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
class Stamps:
    """The timestamps of some passes of one submission.

    There is room for `room` more.  They can be read once they are `submitted`; all else
    needs the context's lock.
    """

    def __init__(self, device: Device, passes: int) -> None:
        """Make room for `passes` passes."""
        size = passes * _BYTES
        try:
            self._queries = device.create_query_set(type="timestamp", count=2 * passes)
            self._resolved = device.create_buffer(
                size=size, usage=QUERY_RESOLVE | COPY_SRC
            )
            self._readable = device.create_buffer(size=size, usage=MAP_READ | COPY_DST)
        except Exception as error:
            raise translate(error, "to make room for timestamps") from error
        self.room = passes
        self.submitted = False
        self._passes = 0

    def next_pass(self) -> Descriptor:
        """Return what lets one more compute pass write its two timestamps."""
        begin = 2 * self._passes
        self._passes += 1
        self.room -= 1
        return {
            "query_set": self._queries,
            "beginning_of_pass_write_index": begin,
            "end_of_pass_write_index": begin + 1,
        }

    def resolve(self, encoder: Encoder) -> None:
        """Record, behind the passes, what makes their timestamps readable."""
        buffer, size = self._resolved, self._passes * _BYTES
        encoder.resolve_query_set(self._queries, 0, 2 * self._passes, buffer, 0)
        encoder.copy_buffer_to_buffer(buffer, 0, self._readable, 0, size)

    def read(self) -> Ticks:
        """Wait for the passes; return the ticks at the begin and the end of each."""
        if not self.submitted:
            raise StateError("An error lost what was recorded: nothing was timed.")
        memory, size = self._readable, self._passes * _BYTES
        try:
            memory.map_async("READ_NOSYNC", 0, size).sync_wait()
            view = memory.read_mapped(0, size, copy=False)
            ticks = np.frombuffer(view, np.uint64).reshape(-1, 2).copy()
            memory.unmap()
        except Exception as error:
            raise translate(error, "to read timestamps") from error
        return ticks


def within_timed(what: str) -> StateError:
    """Return the error of a block that holds more than one pass can."""
    return StateError(
        f"timed(): the block needs {what}, which would end its compute pass. Do that "
        f"before the block or after it."
    )
