"""Atomic replacement of a file: readers see the old content or the new."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from kerngen.output.lock import Waiting, locked_folder

_DRAFT: Final = ".kerngen.tmp"
"""What the new file is written as: one name, so that what a kill leaves is used again."""

_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


def replace_atomically(
    file: Path, before: bytes, after: bytes, waiting: Waiting | None = None
) -> None:
    """Replace a file's content in one step; mode, owner and links are kept.

    Raises `OSError`, and has changed nothing: also of a file that is read-only, or that
    somebody has saved since its content was read as `before`.
    """
    target = file.resolve()
    with locked_folder(target.parent, waiting):
        # Replacing a file would not ask whether it may be written.
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
    """Write a file with another's mode, and its owner where we may give files away."""
    handle = os.open(draft, _NEW, 0o600)  # nobody sees a private file meanwhile
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    like = target.stat()
    if hasattr(os, "chown"):  # Windows has none
        with suppress(PermissionError):
            os.chown(draft, like.st_uid, like.st_gid)
    draft.chmod(like.st_mode & 0o7777)
