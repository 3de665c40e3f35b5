"""Change many files of a folder as one transaction, even if the build is killed.

The new files are first laid out in a staging folder beside the output.  Then one of two
things happens:

1. the output is exchanged for a changed twin by one rename (`atomic_swap`): killed at any
   moment, it is the old one or the new one, whole;
2. where folders can't be exchanged (Windows, overlays and mounts, or where the caller's
   working directory would be pulled from under its feet), files are replaced one by one
   (`in_place`): a failure puts the old ones back; after a kill, the next build does so.

A staging folder that a killed build left behind is removed by the next one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from kerngen.output.atomic_swap import rescue, swap_folder
from kerngen.output.changes import Changes
from kerngen.output.errors import OutputError
from kerngen.output.in_place import change_in_place, journal_of, undo
from kerngen.output.lock import Waiting, locked_folder

_OURS = frozenset(
    {"twin", "new", "old", "journal.json", "journal.draft", "kept.json", "kept.draft"}
)
"""What a build that was killed may leave in the staging folder."""


@contextmanager
def locked(out: Path, waiting: Waiting | None = None) -> Generator[None]:
    """Lock `out` for one process at a time; first undo what a killed one left."""
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
        # It is done or undone, and an error here would deny that.  What can't
        # be carried over or removed now is left to the next build.
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
    """Carry over what was saved meanwhile, and remove the staging folder."""
    aside = rescue(out, staging)
    if not journal_of(staging).exists():
        shutil.rmtree(staging, ignore_errors=aside is not None)
    if aside:
        raise OutputError(
            f"Files were saved in '{out}' while a build replaced it, and their folders "
            f"are links or files now: they are in '{aside}'; move them."
        )


def _refuse_strange(staging: Path) -> None:
    """Refuse to remove what no build has left behind."""
    is_folder = staging.is_dir() and not staging.is_symlink()
    strange = not is_folder or any(
        item.name not in _OURS or item.is_symlink() for item in staging.iterdir()
    )
    if strange:
        raise OutputError(
            f"'{staging}' is where a build keeps its files for as long as it writes, "
            f"and something else is there: move it."
        )
