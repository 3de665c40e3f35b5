"""Formatting files: what would change."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
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
