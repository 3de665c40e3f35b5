"""The backends in use, for what all of them must hear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from kerngen.runtime.kernel import Kernel


class Remembering(Protocol):
    """A backend that remembers kernels."""

    def forget_kernels(self, kernels: frozenset[Kernel]) -> None:
        """Drop what it holds of kernels that are no longer called."""


BACKENDS: WeakSet[Remembering] = WeakSet()
"""Every backend that remembers kernels adds itself."""


def forget_kernels(kernels: frozenset[Kernel]) -> None:
    """Drop what every backend holds of kernels that are no longer called."""
    for backend in list(BACKENDS):
        backend.forget_kernels(kernels)
