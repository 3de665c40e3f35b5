"""Change a folder file by file, with a journal to undo an interrupted change.

For where folders can't be exchanged.  While there is a journal, the folder may hold old
and new files; `undo` makes it the old one again, and may itself be cut short and repeated.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kerngen.output.changes import (
    Changes,
    remove_empty_folders,
    write_files,
    write_note,
)
from kerngen.output.confine import blocked, leads_out
from kerngen.output.errors import OutputError


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
    """Copy what will be overwritten or removed, and note what is new; journal last."""
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
        # What wasn't reached is left alone: it may be what can't be written.
        if saved.is_file() and not _same_content(saved, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            saved.replace(target)
    journal.unlink()


def _place(path: str, out: Path, staging: Path) -> Path:
    """Return where a file lies; raise `OutputError` if the way there leads elsewhere."""
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
