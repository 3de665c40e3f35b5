"""Format printed modules as black does, passing black only the lines that are too long.

The printer lays out everything else as black would.  How black breaks a long line depends on
nothing around it but the indentation and the bracket that it is in, so it gets each by
itself.  The whole text would take four times as long, as black goes over the contents of a
bracket once for every bracket around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import final

from kerngen.emit.broken import broken
from kerngen.emit.writer import INDENT, WIDTH

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_FRAMES = {"(": "_(\n{}\n)\n", "[": "[\n{}\n]\n", "{": "{{\n{}\n}}\n"}
"""The text around an item of a bracket for black: a call, as `(x)` alone is no tuple."""

_QUOTES = '"""'


@final
@dataclass(frozen=True, slots=True)
class _Line:
    """A printed line; `bracket` is the open one that it is an item of, or "".

    `is_code` is false for docstrings and comments, which black leaves as they are.
    """

    text: str
    is_code: bool = True
    bracket: str = ""

    @property
    def is_long(self) -> bool:
        """Whether black may lay it out in another way."""
        return self.is_code and len(self.text) > WIDTH

    @property
    def is_whole(self) -> bool:
        """Whether black can be given it alone."""
        is_item = self.text.endswith(",")
        is_part = self.text.startswith("@") or self.text.endswith(tuple(_CLOSERS))
        return is_item == bool(self.bracket) and not is_part


def formatted(text: str) -> str:
    """Return a printed module in black's format."""
    # If black can't be given a long line alone, it gets the whole text.
    lines = list(_lines(text))
    if all(line.is_whole for line in lines if line.is_long):
        return "".join(map(_formatted, lines))
    return _black(text, WIDTH)


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines of a printed module, whose brackets open at the ends of lines."""
    brackets: list[str] = []
    is_doc = False
    for line in text.splitlines():
        code = line.lstrip()
        # A docstring begins and ends with its quotes at the margin of a line.
        if is_doc or code.startswith((_QUOTES, f"r{_QUOTES}", "#")):
            is_doc = code != _QUOTES if is_doc else code.count(_QUOTES) == 1
            yield _Line(line, is_code=False)
            continue
        if brackets and code.startswith(_CLOSERS[brackets[-1]]):
            brackets.pop()
        yield _Line(line, bracket=brackets[-1] if brackets else "")
        if code.endswith(tuple(_CLOSERS)):
            brackets.append(code[-1])


def _formatted(line: _Line) -> str:
    if not line.is_long:
        return f"{line.text}\n"
    code = line.text.lstrip()
    indent = line.text.removesuffix(code)
    pieces = _pieces(code, WIDTH - len(indent), line.bracket)
    return "".join(f"{indent}{piece}\n" for piece in pieces)


@cache
def _pieces(code: str, width: int, bracket: str) -> tuple[str, ...]:
    """Return the lines that black makes of a long one, without its indentation.

    Cached: signatures and calls of a module are often alike.
    """
    if bracket:
        framed = _FRAMES[bracket].format(code)
        _, *items, _ = _black(framed, width + len(INDENT)).splitlines()
        return tuple(item.removeprefix(INDENT) for item in items)
    by_one = broken(code, width)
    if by_one:
        return by_one
    # The head of a block is no statement without a body.
    if code.endswith(":"):
        head = _black(f"{code}\n{INDENT}pass\n", width).splitlines()
        return tuple(head[:-1])
    return tuple(_black(code, width).splitlines())


def _black(text: str, width: int) -> str:
    """Format a text by black, whose import takes as long as compiling a small file."""
    from black import format_str  # noqa: PLC0415 - of those who format alone
    from black.mode import Mode, TargetVersion  # noqa: PLC0415

    mode = Mode(target_versions={TargetVersion.PY311}, line_length=width)
    return format_str(text, mode=mode)
