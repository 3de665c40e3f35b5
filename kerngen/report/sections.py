"""The sections of a text: each an item that begins at the left margin, found unparsed.

    const HALF: f32 = 0.5;                              1
    kernel halve(x: f32[n]) -> y: f32[n] { ... }        2, which depends on 1
    schedule halve when n > 64 { map, wg = 64 }         3; 2 and 3 depend on each other

To check a text again, only the sections that have changed are needed, and their dependencies.
Every word that is the name of an item counts as a dependency: too many are found rather than
too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from kerngen.source.text import Source
from kerngen.syntax.lexemes import ITEM_WORDS
from kerngen.syntax.outline import is_pattern, matching, outline_of

_BEGINS: Final = re.compile(rf"^(?:{'|'.join(sorted(ITEM_WORDS))})\b", re.MULTILINE)
_COMMENT: Final = re.compile(r"//(/(?!/)|!|)[^\n]*")
_WORD: Final = re.compile(r"[^\W\d]\w*")
_SHARED: Final = re.compile(r"\b(?:fn|const|struct)\s+(\w+)")
_DERIVES: Final = re.compile(r"\b(?:gradient|derivative)\s+of\b")
_GUARD: Final = re.compile(r"\bwhen\b([^{]*)")


@final
@dataclass(frozen=True, slots=True)
class Contents:
    """The names in a section's text.

    - `words`: all words outside of comments
    - `kernels`, `shared`: the kernels, and the functions, constants and structs, that it
      defines
    - `targets`: the names of items whose meaning it changes, as a schedule, a gradient or a
      derivative
    - `guards`: the words in the guards of its schedules
    - `begins`: the keyword that it begins with, or ""
    - `code`: the text with single blanks; of a comment only the mark of a doc comment is left
    """

    words: frozenset[str]
    kernels: frozenset[str]
    shared: frozenset[str]
    targets: frozenset[str]
    guards: frozenset[str]
    begins: str
    code: str

    @property
    def may_be_left_out(self) -> bool:
        """Whether no hint about another item can propose a name in it: a kernel or schedule."""
        return self.begins in {"kernel", "schedule"}

    @property
    def derives(self) -> bool:
        """Whether it has a gradient, or a derivative."""
        return _DERIVES.search(self.code) is not None


@final
@dataclass(frozen=True, slots=True)
class TextSection:
    """A part of a text, from an offset on."""

    start: int
    text: str
    contents: Contents

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


def sections_of(text: str) -> tuple[TextSection, ...]:
    """Return the sections of a text; the first begins with it."""
    starts = [0]
    for match in _BEGINS.finditer(text):
        start = _before_comments(text, match.start(), starts[-1])
        if start > starts[-1]:
            starts.append(start)
    ends = (*starts[1:], len(text))
    pieces = ((start, text[start:end]) for start, end in zip(starts, ends, strict=True))
    return tuple(TextSection(start, piece, _contents(piece)) for start, piece in pieces)


def _before_comments(text: str, start: int, least: int) -> int:
    """Return where the comments and blank lines right above a line begin."""
    while start > least:
        above = text.rfind("\n", 0, start - 1) + 1
        line = text[above:start].strip()
        if above < least or (line and not line.startswith("//")):
            break
        start = above
    return start


@lru_cache(maxsize=4096)  # the items of a few large files
def _contents(text: str) -> Contents:
    """Return the names in a section's text, found by patterns and its outline."""
    code = _COMMENT.sub(_mark, text)
    outline = outline_of(Source("", text))
    words = frozenset(_WORD.findall(code))
    begins = _BEGINS.search(text)
    guards = " ".join(_GUARD.findall(code)) if outline.scheduled else ""
    derived = words if _DERIVES.search(code) else frozenset[str]()
    return Contents(
        words,
        outline.kernels,
        frozenset(_SHARED.findall(code)),
        outline.scheduled | derived,
        frozenset(_WORD.findall(guards)),
        begins[0] if begins else "",
        " ".join(code.split()),
    )


def _mark(comment: re.Match[str]) -> str:
    """Return the beginning of a doc comment, or a blank for any other comment."""
    return f" //{comment[1]} " if comment[1] else " "


@final
class Dependencies:
    """Which sections depend on which."""

    def __init__(self, sections: Sequence[TextSection]) -> None:
        self._sections = sections
        self._direct = _direct(sections)

    def of(self, begin: Iterable[int]) -> set[int]:
        """Return sections and all that they depend on, by number."""
        found = set(begin)
        waiting = [*found]
        while waiting:
            more = self._direct[waiting.pop()] - found
            found |= more
            waiting += more
        return found


def _direct(sections: Sequence[TextSection]) -> list[set[int]]:
    """Return the sections that each one depends on directly."""
    defined: dict[str, list[int]] = {}
    kernels = dict.fromkeys(k for each in sections for k in each.contents.kernels)
    for number, each in enumerate(sections):
        for name in each.contents.kernels | each.contents.shared:
            defined.setdefault(name, []).append(number)
    # A section depends on those that define a word in it.
    names = frozenset(defined)
    found = [
        {other for name in names & each.contents.words for other in defined[name]}
        for each in sections
    ]
    # A schedule or derivative and its targets depend on each other.
    for number, each in enumerate(sections):
        for name in _targeted(each.contents, kernels):
            for other in defined.get(name, ()):
                found[other].add(number)
                found[number].add(other)
    return found


def _targeted(contents: Contents, kernels: Iterable[str]) -> Iterator[str]:
    """Yield the names of items that a section changes the meaning of."""
    for target in contents.targets:
        yield from matching(target, kernels) if is_pattern(target) else (target,)
