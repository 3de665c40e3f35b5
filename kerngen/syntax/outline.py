"""The outline of a file: the files it uses, and the kernels it defines and schedules.

It is found by a scan for keywords, which is done before the parser would be loaded: a build
needs only the outlines to find out which files are stale.  Of a file without syntax errors
the outline has exactly the names that the parser finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, final

from kerngen.source.text import Source, Span
from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes

ANY: Final = "*"
"""The wildcard of a pattern: it matches any characters, or none."""


def is_pattern(name: str) -> bool:
    """Whether a schedule's target is a pattern, not the name of one kernel."""
    return ANY in name


def matching(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that a pattern matches; a plain name matches itself alone.

    >>> list(matching("matmul_*_bias", ["matmul_nn_bias", "matmul_nn"]))
    ['matmul_nn_bias']
    """
    # fnmatch takes linear time for any number of stars, unlike a plain `.*` for each.
    return (name for name in names if fnmatchcase(name, pattern))


_KEYWORD = re.compile(r'//[^\r\n]*|"[^"\r\n]*"?|\b(use|kernel|schedule)\b')
"""A keyword, or a comment or string that is passed over with the words in it."""

_ENDS_TARGETS = ITEM_WORDS | {"when"}


@final
@dataclass(frozen=True, slots=True)
class Use:
    """A `use "path";`, with the span of the quoted path."""

    path: str
    span: Span


@final
@dataclass(frozen=True, slots=True)
class Outline:
    """The files that a file uses, and the kernels that it defines and schedules.

    `scheduled` has names and patterns, such as `matmul_*`.
    """

    uses: tuple[Use, ...]
    kernels: frozenset[str]
    scheduled: frozenset[str]

    def schedules_any(self, kernels: frozenset[str]) -> bool:
        """Whether the file schedules any of these kernels."""
        patterns = filter(is_pattern, self.scheduled)
        return not kernels.isdisjoint(self.scheduled) or any(
            any(matching(pattern, kernels)) for pattern in patterns
        )


@lru_cache(maxsize=256)  # each check in an editor asks for all files
def outline_of(source: Source) -> Outline:
    """Return the outline of a file, even of one with errors."""
    uses: list[Use] = []
    kernels: set[str] = set()
    scheduled: set[str] = set()
    for keyword, after in _after_keywords(source.text):
        if keyword == "kernel":
            kernels.add(after.text)
        elif keyword == "schedule":
            scheduled.update(_targets(source.text, after))
        elif re.fullmatch(r'".*"', after.text):
            span = Span(source, after.start, after.end)
            uses.append(Use(after.text[1:-1], span))
    return Outline(tuple(uses), frozenset(kernels), frozenset(scheduled))


def _targets(text: str, first: Lexeme) -> Iterator[str]:
    """Yield the kernels and patterns of a schedule: of `a, b*.mean when ...`, `a` and `b*`."""
    name, in_stage = "", False
    for lexeme in lexemes(text, first.start):
        match lexeme.text:
            case ",":
                yield name
                name, in_stage = "", False
            case ".":
                in_stage = True
            case "*":
                name += ANY
            case word if word not in _ENDS_TARGETS and word.isidentifier():
                name += "" if in_stage else word
            case _:
                break
    if name:
        yield name


def _after_keywords(text: str) -> Iterator[tuple[str, Lexeme]]:
    """Yield each keyword, and the lexeme right after it."""
    for match in _KEYWORD.finditer(text):
        after = next(lexemes(text, match.end()), None) if match[1] else None
        if after:
            yield match[1], after
