"""Integrity of tensors on the device: detects writes that were interrupted or lost.

Calls only record work.  An interrupt may come between two of them, and an error may end a
recording long after the call: either way the contents are not what they should be, and
nothing on the device shows it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, final

from kerngen.runtime import Error, Tensor


@final
class Integrity:
    """Tracks whether tensors that belong together were all written."""

    def __init__(self, tensors: Sequence[Tensor[Any, Any]]) -> None:
        """Track tensors that are valid now."""
        self._tensors = tensors
        self._fault = ""
        self._losses = self._count_losses()

    @property
    def fault(self) -> str:
        """The reason why they are invalid, as a clause; "" if they are valid."""
        if self._count_losses() != self._losses:
            return "recorded work was lost with an error"
        return self._fault

    @property
    def writes(self) -> int:
        """The number of calls that have written them."""
        return sum(tensor.writes for tensor in self._tensors)

    @contextmanager
    def writing(
        self, otherwise: str, *, anew: bool = False
    ) -> Generator[None, None, None]:
        """Run a block that writes the tensors; if it fails, `otherwise` is their fault.

        If the block overwrites all of them (`anew`), they are valid after it, whatever was
        before.  An Error that comes before anything was written changes nothing.
        """
        before, fault = self.writes, self._fault
        # Set before the block: an interrupt, which is no Error, may come at any point.
        self._fault = otherwise
        try:
            yield
        except Error:
            if self.writes == before:
                self._fault = fault
            raise
        self._fault = "" if anew else fault
        if anew:
            self._losses = self._count_losses()

    def spoil(self, fault: str) -> None:
        """Mark them as invalid until they are written anew; `fault` is the reason."""
        self._fault = fault

    def _count_losses(self) -> int:
        return sum(tensor.losses for tensor in self._tensors)
