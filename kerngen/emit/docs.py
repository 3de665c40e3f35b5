"""Docstrings and comments that contain users' text, safely escaped.

Whatever the text holds, it stays text: it can't end a docstring or a comment, and its
backslashes are literal.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from kerngen.emit.writer import INDENT, WIDTH, Writer
from kerngen.ir.nodes import Kernel

_MARKED = re.compile(r"\s|[-*+>|#]|\d+[.)]\s")
"""The beginning of a line that is no plain paragraph's: indented text, or a list's item."""
_ROOM = 24
"""The least width that a text is wrapped to, however deep it is indented."""


def source_texts(kernel: Kernel) -> Iterator[str]:
    """Yield the lines of a kernel's source: its head, `require`s, hosts and statements.

    A copy of a struct, which is a statement for each member, is yielded once.
    """
    yield kernel.signature
    yield from (f"require {each.text};" for each in kernel.requires)
    yield from (host.text for host in kernel.hosts)
    written = groupby(kernel.body, lambda each: (each.text, each.span or id(each)))
    yield from (text for (text, _), _ in written)


def plain(text: str) -> str:
    """Return text with unprintable characters spelled out, so that it stays on one line."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    # A line separator would end a comment, and Python refuses a null byte.
    return " " if character.isspace() else f"<U+{ord(character):04X}>"


def write_docstring(writer: Writer, lines: Sequence[str]) -> None:
    """Write a docstring of these lines, of which the first is the summary."""
    shown = [plain(line).rstrip() for line in lines]
    while shown and not shown[-1]:
        shown.pop()
    # A raw docstring keeps backslashes, but can't hold triple quotes: these are escaped, and
    # then backslashes are, too.
    is_raw = any("\\" in line for line in shown)
    if any('"""' in line for line in shown):
        is_raw = False
        shown = [_escape_quotes(line) for line in shown]
    first, *rest = shown or [""]
    prefix = "r" if is_raw else ""
    writer.line(f'{prefix}"""{_gap(first)}{first}{_end(first) if not rest else ""}')
    for line in rest:
        writer.line(line)
    if rest:
        writer.line('"""')


def _escape_quotes(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _gap(line: str) -> str:
    """Return the blank, if needed, between a docstring's quotes and its first line."""
    return " " if line.startswith('"') else ""


def _end(line: str) -> str:
    """Return the quotes that end a docstring of one line, apart from its last one."""
    gap = " " if line.endswith(('"', "\\")) else ""
    return f'{gap}"""'


def write_comment(writer: Writer, text: str) -> None:
    """Write a comment of as many lines as it needs."""
    for line in wrapped(plain(text), writer.depth, indent="  "):
        writer.line(f"# {line}")


def wrapped(text: str, depth: int, indent: str = "") -> list[str]:
    """Return text broken into lines that fit at an indentation `depth`.

    The lines come without that indentation; all but the first begin with `indent`.
    """
    width = max(WIDTH - len(INDENT) * depth - 2, _ROOM)
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def paragraphs(doc: str, depth: int) -> list[str]:
    """Return the lines of a doc comment; a paragraph with a line that is too long is refilled.

    Lists and indented text keep their line breaks; each line is wrapped by itself.
    """
    found: list[str] = []
    for is_blank, group in groupby(doc.splitlines(), lambda line: not line.strip()):
        texts = [*group]
        lines = [line for text in texts for line in wrapped(text, depth) or [""]]
        if is_blank or len(lines) == len(texts) or any(map(_MARKED.match, texts)):
            found += lines
        else:
            found += wrapped(" ".join(texts), depth)
    return found


def summary(doc: str, otherwise: str) -> list[str]:
    """Return the lines of a doc comment, or only `otherwise` if it is empty.

    A first line that is a paragraph of its own gets a full stop if it has none.
    """
    first, *rest = doc.strip().splitlines() or [otherwise]
    ended = first if first.endswith((".", "!", "?")) else f"{first}."
    if not rest or not rest[0].strip():
        return [ended, *rest]
    return [first, *rest]


def section(title: str, entries: Iterable[tuple[str, str]], depth: int) -> list[str]:
    """Return the lines of a docstring's section, as `Args:`, with an entry for each name.

    Without entries there are no lines.
    """
    # In Google's style: `Args:`, then an indented entry for each name.
    lines = [
        INDENT + line
        for name, text in entries
        for line in wrapped(f"{name}: {plain(text)}", depth + 1, indent=INDENT)
    ]
    return ["", f"{title}:", *lines] if lines else []
