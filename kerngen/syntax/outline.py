"""What a file says of other files and of kernels, found without parsing it.

Whether a build has anything to do depends on which files use which.  This scan answers
that without the parser, which takes longer to load than such a build takes.  Of a file
without errors of syntax it finds exactly what the parser does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import final

from kerngen.source.text import Source, Span
from kerngen.syntax.lexemes import Lexeme, lexemes


@final
@dataclass(frozen=True, slots=True)
class Use:
    """`use "path";`, with the place of the path and its quotes."""

    path: str
    span: Span


@final
@dataclass(frozen=True, slots=True)
class Outline:
    """The files that a file uses, and the kernels that it defines and schedules."""

    uses: tuple[Use, ...]
    kernels: frozenset[str]
    scheduled: frozenset[str]


def outline_of(source: Source) -> Outline:
    """Return the outline of a file, whatever its text is."""
    found = list(lexemes(source.text, 0))
    uses = tuple(
        Use(path.text[1:-1], Span(source, path.start, path.end))
        for word, path in pairwise(found)
        if word.text == "use" and _is_string(path)
    )
    return Outline(uses, _named(found, "kernel"), _named(found, "schedule"))


def _is_string(lexeme: Lexeme) -> bool:
    return len(lexeme.text) > 1 and lexeme.text[0] == lexeme.text[-1] == '"'


def _named(found: list[Lexeme], keyword: str) -> frozenset[str]:
    """Return what stands right after a keyword."""
    return frozenset(
        name.text for word, name in pairwise(found) if word.text == keyword
    )
