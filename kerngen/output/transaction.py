"""Change many files of a folder as one transaction, even if the build is killed.

The new files are first laid out in a staging folder beside the output.  Then one of two
things happens:

1. the output is exchanged for a changed twin by one rename (`swap_folder`): if the build is
   killed at any moment, the output is the old one or the new one, whole;
2. where folders can't be exchanged (Windows, overlays and mounts, or if the caller's
   working directory is in the output and would be removed), files are replaced one by one
   (`change_in_place`): after a failure the old ones are put back, after a kill the next
   build does so.

The next build also removes the staging folder of a killed one:

    out/                  the output
    .out.kerngen/
        twin/             1: the changed copy; after the exchange, the old output
        kept.json         1: the inode numbers of files that stay
        new/  old/        2: new files; copies of those that are overwritten
        journal.json      2: present while the output is being changed

docs/decisions/0001 has the reasons, and the other ways that were considered.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import final

from kerngen.output.confine import blocked, leads_out
from kerngen.output.errors import OutputError
from kerngen.output.lock import Waiting, locked_folder

_OURS = frozenset(
    {"twin", "new", "old", "journal.json", "journal.draft", "kept.json", "kept.draft"}
)
"""The names in a staging folder that a killed build may have left."""


@contextmanager
def locked(out: Path, waiting: Waiting | None = None) -> Generator[None]:
    """Lock `out` for one process at a time; first undo the changes of a killed one.

    The folder around it is locked, as `out` itself is exchanged for another folder.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(out.parent, waiting):
        _clean_up(out)
        yield


def commit(changes: Changes, out: Path) -> None:
    """Make all changes, or raise and make none; call it under `locked(out)`."""
    if not changes:
        return
    _staging(out).mkdir()
    try:
        if not swap_folder(changes, out, _staging(out)):
            change_in_place(changes, out, _staging(out))
    finally:
        # The changes are made or undone, and an error here would hide that.  Files that
        # can't be carried over or removed now are left to the next build.
        with suppress(OSError):
            _finish(out, _staging(out))


def _staging(out: Path) -> Path:
    return out.with_name(f".{out.name}.kerngen")


def _clean_up(out: Path) -> None:
    staging = _staging(out)
    if os.path.lexists(staging):
        _refuse_strange(staging)
        undo(out, staging)
        _finish(out, staging)


def _finish(out: Path, staging: Path) -> None:
    """Carry over files that were saved during the swap, and remove the staging folder."""
    aside = rescue(out, staging)
    if not journal_of(staging).exists():
        shutil.rmtree(staging, ignore_errors=aside is not None)
    if aside:
        raise OutputError(
            f"Files were saved in '{out}' while a build replaced it, and their folders "
            f"are links or files now: they are in '{aside}'; move them."
        )


def _refuse_strange(staging: Path) -> None:
    """Raise if the staging folder has anything that no build left behind."""
    is_folder = staging.is_dir() and not staging.is_symlink()
    strange = not is_folder or any(
        item.name not in _OURS or item.is_symlink() for item in staging.iterdir()
    )
    if strange:
        raise OutputError(
            f"'{staging}' is where a build keeps its files for as long as it writes, "
            f"and something else is there: move it."
        )


# Changes to a folder as data, and the file operations that apply them.


@final
@dataclass(frozen=True, slots=True)
class Changes:
    """Files to write and files to remove, by path relative to the folder."""

    write: Mapping[str, bytes]
    remove: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.write or self.remove)

    @property
    def paths(self) -> frozenset[str]:
        """All paths that are written or removed."""
        return self.remove.union(self.write)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write new files, with the folders that they need."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)


def write_note(note: Path, value: object) -> None:
    """Write a JSON file in one step: never half of it."""
    draft = note.with_suffix(".draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(note)


def remove_empty_folders(removed: Iterable[str], folder: Path) -> None:
    """Remove folders below `folder` that are empty after files were removed."""
    parents = {up for path in removed for up in PurePosixPath(path).parents if up.parts}
    for parent in sorted(parents, key=lambda up: len(up.parts), reverse=True):
        try:
            (folder / parent).rmdir()
        except OSError:  # not empty: somebody else's files are in it
            continue


# Change a folder file by file, with a journal to undo an interrupted change.
#
# This is for systems where folders can't be exchanged.  While there is a journal, the folder
# may contain old and new files; `undo` restores the old ones.  An `undo` that is killed is
# repeated by the next build.


def journal_of(staging: Path) -> Path:
    """Return the path of the journal, which exists during a change."""
    return staging / "journal.json"


def change_in_place(changes: Changes, out: Path, staging: Path) -> None:
    """Make the changes, or raise and leave the folder as it was."""
    new = staging / "new"
    write_files(changes.write, new)
    _save(changes, out, staging)
    try:
        for path in changes.write:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).replace(out / path)
        for path in changes.remove:
            (out / path).unlink()
        remove_empty_folders(changes.remove, out)
    except BaseException:
        undo(out, staging)
        raise
    journal_of(staging).unlink()


def _save(changes: Changes, out: Path, staging: Path) -> None:
    """Copy the files that will be overwritten or removed, then write the journal.

    The journal lists the files that are new.  It comes last: before it nothing is changed,
    and once it is there, all copies are.
    """
    added: list[str] = []
    for path in changes.paths:
        saved = staging / "old" / path
        saved.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(out / path, saved)
        except FileNotFoundError:
            added.append(path)
    write_note(journal_of(staging), sorted(added))


def undo(out: Path, staging: Path) -> None:
    """Restore the old files, if there is a journal."""
    journal = journal_of(staging)
    if not journal.exists():
        return
    added: list[str] = json.loads(journal.read_text("utf-8"))
    for path in added:
        _place(path, out, staging).unlink(missing_ok=True)
    remove_empty_folders(added, out)
    for saved in (staging / "old").rglob("*"):
        path = saved.relative_to(staging / "old").as_posix()
        target = _place(path, out, staging)
        # A file that was not changed yet is left: it may be one that can't be written.
        if saved.is_file() and not _same_content(saved, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            saved.replace(target)
    journal.unlink()


def _place(path: str, out: Path, staging: Path) -> Path:
    """Return the path of an output file; raise `OutputError` if it is not inside `out`."""
    if leads_out(path):
        raise OutputError(
            f"'{staging}' names '{path}', which is outside of '{out}', so no build has "
            "left it there: delete that folder."
        )
    for obstacle in blocked(out, path):
        raise OutputError(
            f"A build was cut short, and the old files of '{out}' can't be put back: "
            f"'{obstacle}' is a link or a file now. Move it; or delete '{staging}', and "
            f"build without them."
        )
    return out / path


def _same_content(saved: Path, target: Path) -> bool:
    return target.is_file() and saved.read_bytes() == target.read_bytes()


# Atomic change of a folder: it is swapped with a changed copy, made of hard links.
#
# The twin is made of hard links to everything that stays, a user's own files included, so
# that no file is copied and none changes its time.  One rename then swaps the two.  A file
# that a user saved in the folder between these steps is then in the old folder, from which
# `rescue` carries it over.


_NOTE = "kept.json"
"""A file with a number for each path: the inode of a file that stays, or _GENERATED."""

_NEW, _GENERATED = 0, -1
"""Numbers that no inode has: of a path that did not exist, and of a generated file."""

_AT_FDCWD = -100  # Linux: paths are relative to the working directory
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
            return False  # the caller's working directory would be removed
        _link_folder(out, twin, changes.paths)
        # The numbers before generated files are written: those of the user's files.
        kept = {path: _number(file) for path, file in _files(twin)}
        write_files(changes.write, twin)
        remove_empty_folders(changes.remove, twin)
        generated = dict.fromkeys(changes.paths, _GENERATED)
        write_note(staging / _NOTE, {**generated, **kept})
        _exchange(twin, out)
    except OSError:
        # Either folders can't be exchanged here, or `change_in_place` fails, too, and
        # reports the error.
        shutil.rmtree(twin, ignore_errors=True)
        return False
    return True


def _link_folder(folder: Path, twin: Path, skipped: frozenset[str]) -> None:
    """Make `twin` a copy of `folder` by hard links, without the files that are skipped."""
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
    """Yield everything below a folder but folders, with its path."""
    for file in folder.rglob("*"):
        if file.is_symlink() or not file.is_dir():
            yield file.relative_to(folder).as_posix(), file


def _number(file: Path) -> int:
    """Return the inode number; a file that an editor saved in its place has another."""
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

    After a kill it is repeated.  A file that was saved again after the exchange is newer,
    and stays.  Where a folder has become a link or a file meanwhile, files saved in it are
    put into a new folder beside the output, which is returned.
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
