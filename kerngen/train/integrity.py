"""Whether what lies on the device is whole: neither half written, nor lost with an error.

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
    """Knows of tensors that belong together whether they are whole."""

    def __init__(self, tensors: Sequence[Tensor[Any, Any]]) -> None:
        """Take them for whole."""
        self._tensors = tensors
        self._fault = ""
        self._losses = self._count_losses()

    @property
    def fault(self) -> str:
        """Why they are not whole, as a clause; empty if they are."""
        if self._count_losses() != self._losses:
            return "recorded work was lost with an error"
        return self._fault

    @property
    def writes(self) -> int:
        """How many calls have written them."""
        return sum(tensor.writes for tensor in self._tensors)

    @contextmanager
    def writing(
        self, otherwise: str, *, anew: bool = False
    ) -> Generator[None, None, None]:
        """Take them for whole again only if the block ends well; `otherwise` is the reason if not.

        What is written `anew` is whole then, whatever was before.  An error that comes
        before anything was written changes nothing.
        """
        before, fault = self.writes, self._fault
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

    def _count_losses(self) -> int:
        return sum(tensor.losses for tensor in self._tensors)
