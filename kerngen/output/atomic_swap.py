"""Atomic change of a folder: it is swapped with a changed copy, made of hard links.

The twin is made of hard links to everything that stays, a user's own files included, so
that no file is copied and none changes its time.  One rename then swaps the two.  What a
user saved in the folder between these steps is then in the old one, and is carried over.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

from kerngen.output.changes import (
    Changes,
    remove_empty_folders,
    write_files,
    write_note,
)
from kerngen.output.confine import blocked

_NOTE = "kept.json"
"""A file with the inode number of each file that stays, and of what was generated."""

_NEW, _GENERATED = 0, -1
"""Numbers that no inode has: for a file that was not there, and for one that is ours."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux: renameat2
_RENAME_SWAP = 2  # macOS: renamex_np


def swap_folder(changes: Changes, out: Path, staging: Path) -> bool:
    """Make the changes and return True, or change nothing and return False.

    `rescue` must be called afterwards, whatever the result.
    """
    twin = staging / "twin"
    if sys.platform == "win32":
        return False
    try:
        if not out.exists():
            write_files(changes.write, twin)
            twin.rename(out)
            return True
        if Path.cwd().is_relative_to(out):
            return False  # the caller would be left standing in a removed folder
        _link_folder(out, twin, changes.paths)
        kept = {path: _number(file) for path, file in _files(twin)}
        write_files(changes.write, twin)
        remove_empty_folders(changes.remove, twin)
        generated = dict.fromkeys(changes.paths, _GENERATED)
        write_note(staging / _NOTE, {**generated, **kept})
        _exchange(twin, out)
    except OSError:
        # If it is more than that this way is barred, the other meets it too.
        shutil.rmtree(twin, ignore_errors=True)
        return False
    return True


def _link_folder(folder: Path, twin: Path, skipped: frozenset[str]) -> None:
    """Make `twin` hold the very files of `folder`, less those skipped."""
    twin.mkdir()
    owner = folder.stat()
    os.chown(twin, owner.st_uid, owner.st_gid)
    shutil.copystat(folder, twin)
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            below = frozenset(_below(item.name, skipped))
            _link_folder(item, twin / item.name, below)
        elif item.name not in skipped:
            os.link(item, twin / item.name, follow_symlinks=False)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Everything below a folder that is none, by path."""
    for file in folder.rglob("*"):
        if file.is_symlink() or not file.is_dir():
            yield file.relative_to(folder).as_posix(), file


def _number(file: Path) -> int:
    """The inode number, which a file that was saved in its place does not have."""
    try:
        return file.lstat().st_ino
    except FileNotFoundError:
        return _NEW


def _below(name: str, paths: frozenset[str]) -> list[str]:
    return [
        path.removeprefix(f"{name}/") for path in paths if path.startswith(f"{name}/")
    ]


def rescue(out: Path, staging: Path) -> Path | None:
    """Carry over files that somebody saved in the old folder during the swap.

    It may be cut short and repeated.  What was saved after the exchange is newer still,
    and stays.  Where a folder has become a link or a file meanwhile, what was saved in it
    is put into a new folder beside the output, which is returned.
    """
    note = staging / _NOTE
    if not note.exists():
        return None
    aside: Path | None = None
    numbers: dict[str, int] = json.loads(note.read_text("utf-8"))
    for path, file in list(_files(staging / "twin")):
        before = numbers.get(path, _NEW)
        if before == _GENERATED or _number(file) == before:
            continue
        if any(blocked(out, path)):
            aside = aside or Path(mkdtemp(prefix=f"{out.name}.saved-", dir=out.parent))
            _move(file, aside / path)
        elif _number(out / path) == before:
            _move(file, out / path)
    note.unlink()
    return aside


def _move(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    file.replace(target)


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
