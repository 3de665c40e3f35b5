"""Source text and the spans that point into it.

Spans are half-open ranges of character offsets.  Lines and columns are computed only
when a diagnostic is printed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, final

COMMENT: Final = re.compile(r"//[^\n]*")


@final
@dataclass(frozen=True)
class Source:
    """The text of a `.kern` file, and its path.

    - `stable_name`: the file's name in generated files, if that is not its path
    - `left_out`: ranges of offsets that are not parsed, as for items that have not changed
      since the last check
    """

    path: str
    text: str = field(repr=False)
    stable_name: str = ""
    left_out: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        """The file's name in generated files."""
        return self.stable_name or self.path

    @property
    def parsed_text(self) -> str:
        """The text with blanks in the place of the parts that are left out."""
        parts, end = list[str](), 0
        for first, behind in self.left_out:
            parts += self.text[end:first], " " * (behind - first)
            end = behind
        return "".join((*parts, self.text[end:]))

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset at which each line begins; there is always at least one line."""
        newlines = (i + 1 for i, char in enumerate(self.text) if char == "\n")
        return (0, *newlines)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """Return the text of a 1-based line, without its line break."""
        start = self.line_starts[line - 1]
        ends = self.line_starts[line:]
        end = ends[0] - 1 if ends else len(self.text)
        return self.text[start:end].rstrip("\r")


@final
@dataclass(frozen=True, slots=True)
class Span:
    """The characters `start <= offset < end` of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters that the span covers."""
        return self.source.text[self.start : self.end]

    @property
    def collapsed(self) -> str:
        """The text on one line, without comments."""
        return collapse(self.text)

    def one_line(self, limit: int = 40) -> str:
        """Return the text on one line, `...` where it is long and no name."""
        line = self.collapsed
        return line if len(line) <= limit or line.isidentifier() else "..."

    @property
    def line(self) -> int:
        """The 1-based line on which the span starts."""
        return self.source.position(self.start)[0]

    def covers(self, other: Span) -> bool:
        """Whether another span of the same source lies inside this one."""
        inside = self.start <= other.start and other.end <= self.end
        return inside and self.source is other.source

    def to(self, other: Span) -> Span:
        """Return the smallest span that covers this one and `other`."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))


def collapse(text: str) -> str:
    """Return source text on one line, without comments."""
    line = " ".join(COMMENT.sub("", text).split())
    return re.sub(r"(?<=[(\[]) |,? (?=[)\]])", "", line)
