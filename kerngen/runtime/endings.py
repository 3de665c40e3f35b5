"""How a context ends: closed, with its device, or left behind by a fork.

Whatever ended it, each later call fails at once, with what to do.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import TypeAlias

from kerngen.runtime.errors import ContextError, DeviceLost, Error
from kerngen.runtime.live import alive

Ending: TypeAlias = Callable[[], Error]
"""Makes the error of a call that comes after the end."""


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


def _leave_behind() -> None:
    """Refuse calls in a forked process, and collect none of its parent's garbage there.

    The end of a device waits for its driver's threads, which the parent alone has.
    """
    gc.freeze()
    for backend in alive():
        backend.leave_behind()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_leave_behind)
