"""Asynchronous reads: begun now and waited for later, while the device works on.

Of a loop that reads one token while the next is computed:

    reading = token.begin_read()
    step.replay()  # recorded while the device works on the one before
    print(reading.numpy())
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from kerngen.runtime.backend import Bytes, Download
from kerngen.runtime.errors import StateError


@final
@dataclass(frozen=True, slots=True)
class FinishedCopy:
    """A `Download` that is finished already: that of NumPy's backend, and of an empty range."""

    data: Bytes

    def finish(self) -> Bytes:
        """Return the bytes of the copy."""
        return self.data

    def abandon(self) -> None:
        """Drop the bytes of the copy."""


@final
class LateRead:
    """A read under way: of a tensor's elements as they were when the read began."""

    __slots__ = ("_as_array", "_download")

    def __init__(
        self, download: Download, as_array: Callable[[Bytes], NDArray[Any]]
    ) -> None:
        """Wrap a download; `as_array` turns its bytes into the tensor's array."""
        self._download: Download | None = download
        self._as_array = as_array

    def numpy(self) -> NDArray[Any]:
        """Wait for the elements, and return them as a new array; can be called once.

        Raises:
            StateError: At the second call.
        """
        download, self._download = self._download, None
        if download is None:
            raise StateError("numpy(): this read has been returned already.")
        return self._as_array(download.finish())

    def __del__(self) -> None:
        """Abandon the read if nobody has waited for it."""
        if self._download is not None:
            self._download.abandon()
