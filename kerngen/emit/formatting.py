"""Format printed modules as black does, passing black only the lines that are too long.

What is printed is laid out as black would have it, but for those.  Black takes each of
them apart on its own: what it makes of one depends on nothing around it but the
indentation and the bracket that it is in.  The whole text would take four times as
long, as black goes over what a bracket holds once for every bracket around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import final

from kerngen.emit.broken import broken
from kerngen.emit.writer import INDENT

_WIDTH = 88
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_FRAMES = {"(": "_(\n{}\n)\n", "[": "[\n{}\n]\n", "{": "{{\n{}\n}}\n"}
"""What black reads an item of a bracket in: in plain parentheses it would be a tuple."""

_QUOTES = '"""'


@final
@dataclass(frozen=True, slots=True)
class _Line:
    """A printed line; `bracket` is the one that it is an item of, if it is of one.

    `is_code` is false for what black leaves as it is: docstrings and comments.
    """

    text: str
    is_code: bool = True
    bracket: str = ""

    @property
    def is_long(self) -> bool:
        """Whether black may lay it out in another way."""
        return self.is_code and len(self.text) > _WIDTH

    @property
    def is_whole(self) -> bool:
        """Whether black can be given it alone."""
        is_item = self.text.endswith(",")
        is_part = self.text.startswith("@") or self.text.endswith(tuple(_CLOSERS))
        return is_item == bool(self.bracket) and not is_part


def formatted(text: str) -> str:
    """Return a printed module in black's format."""
    lines = list(_lines(text))
    if all(line.is_whole for line in lines if line.is_long):
        return "".join(map(_formatted, lines))
    return _black(text, _WIDTH)


def _lines(text: str) -> Iterator[_Line]:
    brackets: list[str] = []
    is_doc = False
    for line in text.splitlines():
        code = line.lstrip()
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
    pieces = _pieces(code, _WIDTH - len(indent), line.bracket)
    return "".join(f"{indent}{piece}\n" for piece in pieces)


@cache
def _pieces(code: str, width: int, bracket: str) -> tuple[str, ...]:
    """Return the lines that black makes of one, less its indentation."""
    if bracket:
        framed = _FRAMES[bracket].format(code)
        _, *items, _ = _black(framed, width + len(INDENT)).splitlines()
        return tuple(item.removeprefix(INDENT) for item in items)
    by_one = broken(code, width)
    if by_one:
        return by_one
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
