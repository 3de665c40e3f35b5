"""The life of a backend: its registry, and the states in which it takes no more calls.

A context ends when it is closed, when its device is lost, or by a fork.  Whatever ended
it, each later call fails at once, with an error that has the way out.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakSet

from kerngen.runtime.errors import ContextError, DeviceLost, Error

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel

ClosedState: TypeAlias = Callable[[], Error]
"""Makes the error of a call that comes after the end."""


class LiveBackend(Protocol):
    """A backend in use."""

    def invalidate_after_fork(self) -> None:
        """Give up the device in a process that was forked from its own."""

    def forget_kernels(self, kernels: frozenset[Kernel]) -> None:
        """Drop what it holds of kernels that are no longer called."""


_live: WeakSet[LiveBackend] = WeakSet()


def register(backend: LiveBackend) -> None:
    """Add a backend to those that are told of forks and reloads; it is kept weakly."""
    _live.add(backend)


def live_backends() -> list[LiveBackend]:
    """Return the backends that are registered and still in memory."""
    return list(_live)


def closed() -> Error:
    """Return the error of a call to a context that was closed."""
    return ContextError(
        "The context is closed, and its tensors with it: by 'close()', or at the end of "
        "its 'with' block. Read results before that, or open another one."
    )


def lost() -> Error:
    """Return the error of a call to a context whose device is lost."""
    return DeviceLost(
        "The context's device is lost, and with it what its tensors held. Open a new "
        "context and upload again."
    )


def forked() -> Error:
    """Return the error of a call to a context in a process that was forked from its own."""
    return ContextError(
        "The process was forked from one that has contexts open, and no device works on "
        "both sides of a fork. Open contexts in each process, and start processes by "
        "multiprocessing.get_context('spawn')."
    )


def _invalidate_all() -> None:
    """Refuse calls in a forked process, and collect none of its parent's garbage there.

    The end of a device waits for its driver's threads, which the parent alone has.
    """
    gc.freeze()
    for backend in live_backends():
        backend.invalidate_after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_invalidate_all)
