"""The lines of a plan file: indented, in fields, with a checksum behind them all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, final

from kerngen.plan.write import checksum_line


class PlanSyntaxError(Exception):
    """A plan file is damaged: the number of its line, and what is wrong there."""

    def __init__(self, line: int, fault: str) -> None:
        """Name the line, from 1."""
        super().__init__(f"line {line}: {fault}")
        self.line = line
        self.fault = fault


@final
@dataclass(frozen=True, slots=True)
class Line:
    """A line with its number, how far it is indented, and its fields."""

    number: int
    depth: int
    fields: tuple[str, ...]

    def refuse(self, fault: str) -> NoReturn:
        """Raise PlanSyntaxError for this line."""
        raise PlanSyntaxError(self.number, fault)

    def string(self, text: str) -> str:
        """Return the text that is quoted in a field."""
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, str):
            self.refuse(f"expected a text in quotes, got {text}")
        return value


Block: TypeAlias = tuple[Line, "Sequence[Line]"]
"""A line, and the deeper lines behind it."""


def lines_of(text: str) -> list[Line]:
    """Return the lines of a plan file behind its first; the last must be their hash."""
    body, end, last = text.rpartition("\n\nend ")
    if not end or last.count("\n") != 1:
        raise PlanSyntaxError(text.count("\n"), "the file is cut off: it has no 'end'")
    if checksum_line(f"{body}\n") != f"end {last[:-1]}":
        raise PlanSyntaxError(body.count("\n") + 3, "the lines above were changed")
    return list(_lines(body))


def _lines(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.split("\n")[1:], start=2):
        bare = line.lstrip(" ")
        if bare:
            depth, odd = divmod(len(line) - len(bare), 2)
            if odd:
                raise PlanSyntaxError(number, "indented by an odd number of spaces")
            yield Line(number, depth, tuple(bare.split(" | ")))


def blocks(lines: Sequence[Line], depth: int) -> Iterator[Block]:
    """Yield each line of a depth with the deeper lines behind it."""
    start = 0
    for at, line in enumerate(lines):
        if line.depth < depth or (at == 0 and line.depth != depth):
            line.refuse("unexpected indentation")
        if line.depth == depth and at > start:
            yield lines[start], lines[start + 1 : at]
            start = at
    if lines:
        yield lines[start], lines[start + 1 :]
