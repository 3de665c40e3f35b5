"""Long statements that one bracket breaks, as black lays them out.

They are most of the long lines of a module: signatures, calls, tuples.  Black takes three
milliseconds for each, a tenth of a build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kerngen.emit.writer import INDENT

_HEAD: Final = re.compile(r"(?:def \w+|\w+ = (?:\w+\.)?\w*)\(")
"""A signature, a call that is named, or a tuple."""

_CLOSERS: Final = {"(": ")", "[": "]"}
_UNUSUAL: Final = re.compile(r"""['\\#]|,[)\]}]|lambda""")
"""What black may change, or take for a wish to have a line for each item."""


def broken(code: str, width: int) -> tuple[str, ...] | None:
    """Return the lines of a statement, or None where it is left to black.

    Before:  def f(x: Vector[f32], *, out: Vector[f32] | None = None) -> Vector[f32]:
    After:   def f(
                 x: Vector[f32], *, out: Vector[f32] | None = None
             ) -> Vector[f32]:
    """
    head = _HEAD.match(code)
    if head is None or _UNUSUAL.search(code):
        return None
    found = _items(code[head.end() :])
    if found is None or found[0] == [""]:
        return None
    items, tail = found
    is_def = code.startswith("def ")
    lines = [head[0], *_inner(items, width - len(INDENT), head[0]), f"){tail}"]
    if (tail and not is_def) or any(len(line) > width for line in lines):
        return None
    return tuple(lines)


def _inner(items: list[str], width: int, head: str) -> Iterator[str]:
    """Yield the lines between the brackets; a display has one for each item."""
    whole = ", ".join(items)
    is_display = head.endswith(("= (", "["))
    is_alone = head.startswith("def ") and len(items) == 1
    if len(whole) <= width and not is_display and not is_alone:
        yield f"{INDENT}{whole}"
    elif len(items) == 1 and not is_alone and whole[0] == "[" and whole[-1] == "]":
        found = _items(whole[1:])
        inner = _inner(found[0], width - len(INDENT), "[") if found else [whole]
        yield from (f"{INDENT}{line}" for line in ("[", *inner, "]"))
    else:
        yield from (f"{INDENT}{item}," for item in items)


def _items(text: str) -> tuple[list[str], str] | None:
    """Return the items in a bracket and the text behind it; None without one."""
    items, depth, start, is_quoted = list[str](), 0, 0, False
    for at, char in enumerate(text):
        if char == '"':
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif char in ")]}":
            return [*items, text[start:at]], text[at + 1 :]
        elif char == "," and not depth:
            items.append(text[start:at])
            start = at + 2
    return None
