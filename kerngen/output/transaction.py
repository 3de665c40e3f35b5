"""Changing many files of a folder as one, so that a killed build leaves the old output.

The new files are first laid out in a staging folder beside the output.  Then one of two
things happens:

1. the output is exchanged for a changed twin by one rename (`by_exchange`): killed at any
   moment, it is the old one or the new one, whole;
2. where folders can't be exchanged (Windows, overlays and mounts, or where the caller's
   working directory would be pulled from under its feet), files are replaced one by one
   (`in_place`): a failure puts the old ones back; after a kill, the next build does so.

A staging folder that a killed build left behind is removed by the next one.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kerngen.output.by_exchange import change_by_exchange
from kerngen.output.changes import Changes
from kerngen.output.errors import OutputError
from kerngen.output.in_place import change_in_place, journal_of, undo

_OURS = frozenset({"twin", "new", "old", "journal.json", "journal.draft"})
"""What a build that was killed may leave in the staging folder."""


@contextmanager
def locked(out: Path) -> Generator[None]:
    """Let one process at a time change `out`, once what a killed one left is undone."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with _file_lock(out.parent):
        _clean_up(out)
        yield


def commit(changes: Changes, out: Path) -> None:
    """Make all the changes, or raise and make none.  Call it under `locked(out)`."""
    if not changes:
        return
    _staging(out).mkdir()
    try:
        if not change_by_exchange(changes, out, _staging(out)):
            change_in_place(changes, out, _staging(out))
    finally:
        if not journal_of(_staging(out)).exists():
            # What can't be removed now doesn't undo the change; the next build tries.
            shutil.rmtree(_staging(out), ignore_errors=True)


def _staging(out: Path) -> Path:
    return out.with_name(f".{out.name}.kerngen")


def _clean_up(out: Path) -> None:
    staging = _staging(out)
    if os.path.lexists(staging):
        _refuse_strange(staging)
        undo(out, staging)
        shutil.rmtree(staging)


def _refuse_strange(staging: Path) -> None:
    """Refuse to remove what no build has left behind."""
    is_folder = staging.is_dir() and not staging.is_symlink()
    if not is_folder or {item.name for item in staging.iterdir()} - _OURS:
        raise OutputError(
            f"'{staging}' is where a build keeps its files for as long as it writes, "
            f"and something else is there: move it."
        )


@contextmanager
def _file_lock(folder: Path) -> Generator[None]:
    """Lock a folder itself: no lock file stays behind, and a kill unlocks it."""
    if sys.platform == "win32":
        yield  # no such lock: two builds at a time are the user's to avoid
        return
    import fcntl  # noqa: PLC0415 (Windows has none)

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
