"""The lifecycle of backends: the registry of live ones, and errors of ended ones.

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
"""A function that makes the error of a call after the end: `closed`, `lost` or `forked`."""


class LiveBackend(Protocol):
    """A backend in use, which is notified of forks and of reloaded kernels."""

    def invalidate_after_fork(self) -> None:
        """Refuse all later calls: this is a forked process, which can't use the device."""

    def forget_kernels(self, kernels: frozenset[Kernel]) -> None:
        """Drop what is cached for `kernels`, which were reloaded."""


_live: WeakSet[LiveBackend] = WeakSet()
"""The backends in memory; weak, so that a context that is dropped goes."""


def register(backend: LiveBackend) -> None:
    """Notify a backend of forks and reloads from now on; it is kept by a weak reference."""
    _live.add(backend)


def live_backends() -> list[LiveBackend]:
    """Return the backends that are registered and still in memory."""
    return list(_live)


def closed() -> Error:
    """Return the error for a call to a closed context."""
    return ContextError(
        "The context is closed, and its tensors with it: by 'close()', or at the end of "
        "its 'with' block. Read results before that, or open another one."
    )


def lost() -> Error:
    """Return the error for a call to a context whose device is lost."""
    return DeviceLost(
        "The context's device is lost, and with it what its tensors held. Open a new "
        "context and upload again."
    )


def forked() -> Error:
    """Return the error for a call to a context that was opened before a fork."""
    return ContextError(
        "The process was forked from one that has contexts open, and no device works on "
        "both sides of a fork. Open contexts in each process, and start processes by "
        "multiprocessing.get_context('spawn')."
    )


def _invalidate_all() -> None:
    """Refuse calls in a forked process, and collect none of its parent's garbage there.

    The end of a device waits for its driver's threads, which the parent alone has: a device
    that the garbage collector found in the child would wait for ever.
    """
    gc.freeze()  # it leaves alone all objects that exist by now
    for backend in live_backends():
        backend.invalidate_after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_invalidate_all)
