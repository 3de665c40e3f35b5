"""Long statements that a break at one bracket makes fit, laid out as black would.

They are most of the long lines of a module: signatures, calls, tuples.  Black takes three
milliseconds for each, a tenth of a build; here they are broken without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kerngen.emit.writer import INDENT

_HEAD: Final = re.compile(r"(?:def \w+|\w+ = (?:\w+\.)?\w*)\(")
"""The beginning of a signature `def f(`, of a named call `x = f(`, or of a tuple `x = (`."""

_UNUSUAL: Final = re.compile(r"""['\\#]|,[)\]}]|lambda""")
"""Text that is left to black.

Black may change quotes, and a comma before a closing bracket asks it for a line per item.
"""


def broken(code: str, width: int) -> tuple[str, ...] | None:
    """Return the lines of a statement that is broken at one bracket.

    None if one break is not enough, or the statement is unusual: then black breaks it.

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
    # Something follows the bracket, or a line is still too long: more than one break.
    if (tail and not is_def) or any(len(line) > width for line in lines):
        return None
    return tuple(lines)


def _inner(items: list[str], width: int, head: str) -> Iterator[str]:
    """Yield the lines between the brackets: all items in one if they fit, else one each.

    Black gives each item of a display its line, and so a signature's only parameter.
    """
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
