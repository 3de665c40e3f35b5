"""A lock on a folder: one process at a time.

The folder itself is locked: no lock file stays behind, and a kill unlocks it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, TypeAlias

_NO_LOCKS: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors of a file system that has no locks."""

PATIENCE: Final = 1.0
"""Seconds to wait before `waiting` is called: mostly the other process is done by then."""

_PAUSE: Final = 0.02
"""Seconds from one attempt to lock to the next."""

Waiting: TypeAlias = Callable[[Path], None]
"""A function that is called when others have locked a folder for longer than PATIENCE."""


@contextmanager
def locked_folder(folder: Path, waiting: Waiting | None = None) -> Generator[None]:
    """Lock a folder for a block, waiting for other processes that have it locked.

    On systems without such locks, as Windows, users must not run two commands at a
    time.
    """
    if sys.platform == "win32":
        yield
        return
    with _lock(folder, waiting):
        yield


def _lock(folder: Path, waiting: Waiting | None) -> ExitStack:
    """Lock the folder at a path; to close the result unlocks it."""
    with ExitStack() as opened:
        while True:
            handle = os.open(folder, os.O_RDONLY)
            opened.callback(os.close, handle)
            try:
                _acquire(handle, folder, waiting)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            # If not, another process has exchanged the folder while we waited: again.
            if os.path.samestat(os.fstat(handle), folder.stat()):
                return opened.pop_all()


def _acquire(handle: int, folder: Path, waiting: Waiting | None) -> None:
    import fcntl  # noqa: PLC0415 (Windows has none)

    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_PAUSE)
        else:
            return
    if waiting:
        waiting(folder)
    fcntl.flock(handle, fcntl.LOCK_EX)
