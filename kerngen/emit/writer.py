"""A writer of indented text.

    writer = Writer()
    with writer.block("def f() -> int:"):
        writer.line("return 1")

makes `writer.text` the two lines of that function.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import final

INDENT = "    "
WIDTH = 88
"""The length of lines in black's format."""


@final
class Writer:
    """Collects lines of text at the current indentation."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "".join(f"{line}\n" for line in self._lines)

    @property
    def depth(self) -> int:
        """The number of open blocks."""
        return self._depth

    def line(self, text: str = "") -> None:
        """Add one line at the current indentation; an empty one has no indentation."""
        self._lines.append(INDENT * self._depth + text if text else "")

    def apart(self) -> None:
        """Add the two empty lines that separate classes and functions."""
        self._lines += ["", ""]

    def lines(self, text: str) -> None:
        """Add several lines at the current indentation."""
        for line in text.splitlines():
            self.line(line)

    @contextmanager
    def block(self, head: str, close: str | None = None) -> Generator[None]:
        """Add `head`, then the lines of the `with` block, one deeper, then `close` if any.

        If the block adds nothing, `close` is on the line of `head`.
        """
        self.line(head)
        first = len(self._lines)
        self._depth += 1
        yield
        self._depth -= 1
        if close is not None and len(self._lines) > first:
            self.line(close)
        elif close is not None:
            self._lines[-1] += close
