"""Conversion between positions of the protocol and offsets in a text.

A position is a line and a column, which counts units of an encoding: UTF-16 as a rule,
UTF-8 or UTF-32 where the client asks for it.  Offsets count characters: behind an emoji the
offset is 1, the column 2 in UTF-16 and 4 in UTF-8.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Final, final

from lsprotocol.types import Position, Range

from kerngen.source.text import Source, Span

_LINE_END: Final = re.compile(r"\r\n?|\n")

_UNITS: Final[Mapping[str, Callable[[str], int]]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text) + sum(char > "\uffff" for char in text),
    "utf-32": len,
}


@final
class Columns:
    """The lines of a text, with columns in the client's encoding."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self._text = text
        self._units = _UNITS[encoding]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self._text))]

    def position(self, offset: int) -> Position:
        """Return the position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._units(self._text[self._starts[line] : offset]))

    def range(self, start: int, end: int) -> Range:
        """Return the range of the characters `start <= offset < end`."""
        return Range(self.position(start), self.position(end))

    def offset(self, position: Position) -> int:
        """Return the offset of a position; past the end of a line, its end."""
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        end = _LINE_END.search(self._text, start)
        line = self._text[start : end.start() if end else len(self._text)]
        if line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for at, char in enumerate(line):
            units += self._units(char)
            if units > position.character:
                return start + at
        return start + len(line)


def range_of(span: Span, encoding: str) -> Range:
    """Return the range of a span in its source."""
    return columns_of(span.source, encoding).range(span.start, span.end)


@lru_cache(maxsize=64)  # a file of 3,000 lines may have hundreds of hints
def columns_of(source: Source, encoding: str) -> Columns:
    """Return the columns of a source."""
    return Columns(source.text, encoding)
