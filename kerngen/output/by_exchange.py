"""Changing a folder by exchanging it for a changed twin: all at once or not at all.

The twin is made of hard links to everything that stays, a user's own files included, so
that no file is copied and none changes its time.  One rename then swaps the two.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from kerngen.output.changes import Changes, remove_empty_folders, write_files

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux: renameat2
_RENAME_SWAP = 2  # macOS: renamex_np


def change_by_exchange(changes: Changes, out: Path, staging: Path) -> bool:
    """Make the changes and return True; or return False, and nothing has happened."""
    twin = staging / "twin"
    try:
        if not out.exists():
            write_files(changes.write, twin)
            twin.rename(out)
            return True
        if Path.cwd().is_relative_to(out):
            return False  # the caller would be left standing in a removed folder
        _link_folder(out, twin, changes.paths)
        write_files(changes.write, twin)
        remove_empty_folders(changes.remove, twin)
        _exchange(twin, out)
    except (
        OSError
    ):  # if it is more than that this way is barred, the other meets it too
        shutil.rmtree(twin, ignore_errors=True)
        return False
    with suppress(OSError):  # it is done, and an error would say that it isn't
        _rescue(twin, out, changes.paths)
    return True


def _link_folder(folder: Path, twin: Path, skipped: frozenset[str]) -> None:
    """Make `twin` hold the very files of `folder`, less those skipped."""
    twin.mkdir()
    shutil.copystat(folder, twin)
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            below = frozenset(_below(item.name, skipped))
            _link_folder(item, twin / item.name, below)
        elif item.name not in skipped:
            os.link(item, twin / item.name, follow_symlinks=False)


def _below(name: str, paths: frozenset[str]) -> list[str]:
    return [
        path.removeprefix(f"{name}/") for path in paths if path.startswith(f"{name}/")
    ]


def _rescue(old: Path, out: Path, changed: frozenset[str]) -> None:
    """Carry over what somebody saved in the old folder while the twin was made."""
    for file in old.rglob("*"):
        path = file.relative_to(old)
        if path.as_posix() in changed or (file.is_dir() and not file.is_symlink()):
            continue
        target = out / path
        if not os.path.lexists(target) or not _same_file(file, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


def _same_file(one: Path, other: Path) -> bool:
    return os.path.samestat(one.lstat(), other.lstat())


def _exchange(first: Path, second: Path) -> None:
    """Swap the names of two folders in one step; at no moment is either missing."""
    a, b = os.fsencode(first), os.fsencode(second)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = libc.renamex_np(a, b, _RENAME_SWAP)
        else:
            failed = libc.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, _RENAME_EXCHANGE)
    except (AttributeError, TypeError):  # no such function; Windows has no CDLL(None)
        raise OSError("folders can't be exchanged here") from None
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(first), None, str(second))
