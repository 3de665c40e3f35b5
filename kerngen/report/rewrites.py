"""Guesses of edits for hints that show another form: `a ** b` becomes `pow(a, b)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kerngen.report.places import Places
from kerngen.source.diagnostic import Diagnostic, Edit
from kerngen.source.text import Span

_OPERAND: Final = r"-?[\w.]+(?:\[[^\[\]]*\]|\([^()]*\))?"


class _Rewrite(NamedTuple):
    """The words of a hint, what is written, and what is to be written instead."""

    hint: str
    written: str
    instead: str


_REWRITES: Final = (
    _Rewrite(
        r"'pow\((?:a, b|x, y)\)'",
        rf"({_OPERAND})\s*(?:\*\*|\^)\s*({_OPERAND})",
        r"pow(\1, \2)",
    ),
    _Rewrite(
        r"'if c \{ a \} else \{ b \}'",
        r"(?s:\A(.+?)\s*\?\s*(.+?)\s*:\s*(.+)\Z)",
        r"if \1 { \2 } else { \3 }",
    ),
    _Rewrite(
        r"Put the condition first",
        r"(?s:\A(.+?)\s+if\s+(.+?)\s+else\s+(.+)\Z)",
        r"if \2 { \1 } else { \3 }",
    ),
    _Rewrite(r"without parentheses: '->", r"->\s*\(([^()]*)\)", r"-> \1"),
)


def rewritten(fault: Diagnostic, places: Places) -> Iterator[Edit]:
    """Yield the rewrites that a diagnostic's hint may mean: of a value, else of an item."""
    for rewrite in _REWRITES:
        if re.search(rewrite.hint, fault.help):
            for place in (places.value, places.statement, places.item):
                if place is not None:
                    yield from _in(place, rewrite)


def _in(place: Span, rewrite: _Rewrite) -> Iterator[Edit]:
    for found in re.finditer(rewrite.written, place.text):
        start, end = (place.start + at for at in found.span())
        yield Edit(Span(place.source, start, end), found.expand(rewrite.instead))
