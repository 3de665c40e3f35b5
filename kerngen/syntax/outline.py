"""What a file says of other files and of kernels, found without parsing it.

Whether a build has anything to do depends on which files use which.  This scan answers
that without the parser, which takes longer to load than such a build takes.  Of a file
without errors of syntax it finds exactly what the parser does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from kerngen.source.text import Source, Span
from kerngen.syntax.lexemes import Lexeme, lexemes

_KEYWORD = re.compile(r'//[^\r\n]*|"[^"\r\n]*"?|\b(use|kernel|schedule)\b')
"""A keyword, or a comment or string that is passed over with the words in it."""


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
    uses: list[Use] = []
    named: dict[str, set[str]] = {"kernel": set(), "schedule": set()}
    for keyword, after in _after_keywords(source.text):
        if keyword != "use":
            named[keyword].add(after.text)
        elif _is_string(after):
            span = Span(source, after.start, after.end)
            uses.append(Use(after.text[1:-1], span))
    kernels, scheduled = map(frozenset, named.values())
    return Outline(tuple(uses), kernels, scheduled)


def _after_keywords(text: str) -> Iterator[tuple[str, Lexeme]]:
    """Yield what stands right after each keyword, and the keyword."""
    for match in _KEYWORD.finditer(text):
        after = next(lexemes(text, match.end()), None) if match[1] else None
        if after:
            yield match[1], after


def _is_string(lexeme: Lexeme) -> bool:
    return len(lexeme.text) > 1 and lexeme.text[0] == lexeme.text[-1] == '"'
