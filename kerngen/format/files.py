"""Formatting of whole files."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import final

from kerngen.format.form import formatted
from kerngen.source.reading import decode_source


@final
@dataclass(frozen=True, slots=True)
class Formatted:
    """A file before and after formatting, with its path as the user knows it."""

    shown: str
    before: bytes
    after: bytes

    @property
    def changed(self) -> bool:
        """Whether formatting changes the file."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the changes as a unified diff."""
        before, after = self.before.decode("utf-8"), self.after.decode("utf-8")
        lines = unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            self.shown,
            f"{self.shown} (formatted)",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def format_data(data: bytes, shown: str) -> Formatted:
    """Format a file's bytes; raise `CompileError` if they are no valid `.kern` file."""
    return Formatted(shown, data, formatted(decode_source(data, shown)).encode())
