"""The backends in use, for what all of them must hear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel


class Living(Protocol):
    """A backend in use."""

    def leave_behind(self) -> None:
        """Give up the device in a process that was forked from its own."""

    def forget_kernels(self, kernels: frozenset[Kernel]) -> None:
        """Drop what it holds of kernels that are no longer called."""


_alive: WeakSet[Living] = WeakSet()


def remember(backend: Living) -> None:
    """Have a backend told, while it lives."""
    _alive.add(backend)


def alive() -> list[Living]:
    """Return the backends that are alive."""
    return list(_alive)
