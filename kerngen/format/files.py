"""Formatting files: what would change, and writing it so that nothing is lost."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import final

from kerngen.format.form import formatted
from kerngen.source.reading import decode_source


@final
@dataclass(frozen=True, slots=True)
class Formatted:
    """The content of a file before and after, and what its user calls it."""

    shown: str
    before: bytes
    after: bytes

    @property
    def changed(self) -> bool:
        """Whether the file isn't in its canonical form yet."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = self.before.decode("utf-8"), self.after.decode("utf-8")
        lines = unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            self.shown,
            f"{self.shown} (formatted)",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def format_data(data: bytes, shown: str) -> Formatted:
    """Format what was read; raise `CompileError` if it isn't a `.kern` file's text."""
    return Formatted(shown, data, formatted(decode_source(data, shown)).encode())


def write_whole(file: Path, data: bytes) -> None:
    """Replace a file's content in one step; its mode stays, and a link stays one.

    Raises `OSError`, also of a file that is read-only, and has changed nothing.
    """
    target = file.resolve()
    with target.open("r+b"):
        pass  # replacing a file would not ask whether it may be written
    handle, name = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        draft.chmod(target.stat().st_mode & 0o7777)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
