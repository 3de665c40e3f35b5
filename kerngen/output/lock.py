"""One process at a time in a folder.

The folder itself is locked: no lock file stays behind, and a kill unlocks it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

_NO_LOCKS: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}
"""What a file system says that has no locks."""


@contextmanager
def locked_folder(folder: Path) -> Generator[None]:
    """Wait for others that have locked a folder, and keep them out for the block.

    Where there are no such locks, as on Windows, two at a time are the user's to avoid.
    """
    if sys.platform == "win32":
        yield
        return
    with _lock(folder):
        yield


def _lock(folder: Path) -> ExitStack:
    """Lock what is there once it is ours; what is returned unlocks it."""
    import fcntl  # noqa: PLC0415 (Windows has none)

    with ExitStack() as opened:
        while True:
            handle = os.open(folder, os.O_RDONLY)
            opened.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            # Else it was exchanged for another meanwhile.
            if os.path.samestat(os.fstat(handle), folder.stat()):
                return opened.pop_all()
