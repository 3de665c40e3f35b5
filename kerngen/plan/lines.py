"""The lines of a plan file: indented fields, with a checksum at the end.

Of a file and its `PlanLine`s:

    kerngen plan 6 | "dsl/softmax.kern" | sha256 0123...     the head
    <blank>
    kernel softmax | "dsl/softmax.kern:7"                    depth 0, two fields
      dims m, n                                              depth 1, one field
    <blank>
    end 1a2b3c4d                                             CRC-32 of all above

Fields are set apart by ` | `, and two spaces are a depth of 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias, final
from zlib import crc32

VERSION: Final = 6
"""The version of the format; a file of any other version is refused."""
HEAD: Final = f"kerngen plan {VERSION}"
NAMELESS: Final = "-"
"""The name of a case that has none."""


def checksum_line(text: str) -> str:
    """Return the last line of a plan file: the CRC-32 of all lines before."""
    return f"end {crc32(text.encode()):08x}"


class PlanSyntaxError(Exception):
    """Raised for a damaged plan file, with the line's number and its fault."""

    def __init__(self, line: int, fault: str) -> None:
        """Name the line, from 1."""
        super().__init__(f"line {line}: {fault}")
        self.line = line
        self.fault = fault


@final
@dataclass(frozen=True, slots=True)
class PlanLine:
    """A line of a plan file: number, indentation and fields.

    `used_by` is the number of the line that uses it, for a line of a form.
    """

    number: int
    depth: int
    fields: tuple[str, ...]
    used_by: int = 0

    def refuse(self, fault: str) -> NoReturn:
        """Raise `PlanSyntaxError` for this line, with `fault` as the reason."""
        use = f", where line {self.used_by} uses it" if self.used_by else ""
        raise PlanSyntaxError(self.number, f"{fault}{use}")

    def string(self, text: str) -> str:
        """Return the string in a field, `text`; refuse the line if that has no quotes."""
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, str):
            self.refuse(f"expected a text in quotes, got {text}")
        return value


Block: TypeAlias = tuple[PlanLine, "Sequence[PlanLine]"]
"""A line, and the lines below it that are indented more."""


def lines_of(text: str) -> list[PlanLine]:
    """Return the lines of a plan file between its head and its `end`, without blank ones.

    Raises `PlanSyntaxError` if the checksum is not that of the text.
    """
    body, end, last = text.rpartition("\n\nend ")
    if not end or last.count("\n") != 1:
        fault = "the file is cut off, or goes on: its last line is no 'end'"
        raise PlanSyntaxError(text.count("\n"), fault)
    if checksum_line(f"{body}\n") != f"end {last[:-1]}":
        raise PlanSyntaxError(body.count("\n") + 3, "the lines above were changed")
    return list(_lines(body))


def _lines(text: str) -> Iterator[PlanLine]:
    """Yield the lines but for the head and blank ones; two spaces are a depth of 1."""
    for number, line in enumerate(text.split("\n")[1:], start=2):
        bare = line.lstrip(" ")
        if bare:
            depth, odd = divmod(len(line) - len(bare), 2)
            if odd:
                raise PlanSyntaxError(number, "indented by an odd number of spaces")
            yield PlanLine(number, depth, tuple(bare.split(" | ")))


def blocks(lines: Sequence[PlanLine], depth: int) -> Iterator[Block]:
    """Yield each line at a depth, with the deeper lines between it and the next one."""
    start = 0
    for at, line in enumerate(lines):
        if line.depth < depth or (at == 0 and line.depth != depth):
            line.refuse("unexpected indentation")
        if line.depth == depth and at > start:
            yield lines[start], lines[start + 1 : at]
            start = at
    if lines:
        yield lines[start], lines[start + 1 :]
