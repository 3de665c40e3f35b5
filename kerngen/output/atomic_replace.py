"""Atomic replacement of a file: readers see the old content or the new."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from kerngen.output.lock import Waiting, locked_folder

_DRAFT: Final = ".kerngen.tmp"
"""The name of the new file while it is written: always the same.

So a draft that a killed process left is removed by the next one.
"""

_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


def replace_atomically(
    file: Path, before: bytes, after: bytes, waiting: Waiting | None = None
) -> None:
    """Replace a file's content in one step; mode, owner and links are kept.

    Raises `OSError` if it can't, and changes nothing then: also if the file is read-only,
    or if somebody has saved it since its content was read as `before`.
    """
    target = file.resolve()
    with locked_folder(target.parent, waiting):
        # Opened for writing: to replace a file needs no permission to write it.
        with target.open("r+b") as stream:
            if stream.read(len(before) + 1) != before:
                raise OSError(
                    errno.EBUSY, "It was saved meanwhile, and stays as it is", str(file)
                )
        draft = target.with_name(_DRAFT)
        draft.unlink(missing_ok=True)
        try:
            _write_as(target, draft, after)
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise


def _write_as(target: Path, draft: Path, content: bytes) -> None:
    """Write a file with another's mode, and its owner if we may change owners."""
    handle = os.open(draft, _NEW, 0o600)  # nobody sees a private file meanwhile
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    like = target.stat()
    if hasattr(os, "chown"):  # Windows has none
        with suppress(PermissionError):
            os.chown(draft, like.st_uid, like.st_gid)
    draft.chmod(like.st_mode & 0o7777)
