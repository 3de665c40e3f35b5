"""Patterns of syntax errors: the token found, those around it, those expected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from string import Template
from typing import TypeAlias, final

from kerngen.syntax.mistakes.mistake import Mistake

Words: TypeAlias = str | frozenset[str]
"""Several words: a set, or a text with blanks between them."""


@final
@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of syntax errors; a condition that is left out is always met.

    `Pattern("...", found="COMMA", takes="SEMICOLON")` is for a ',' where a ';' could be.
    """

    hint: str = ""
    """What to do about such a mistake."""
    _: KW_ONLY
    found: Words = ""
    """The token has one of these kinds."""
    not_found: Words = ""
    """The token has none of these kinds."""
    word: Words = ""
    """The token has one of these texts."""
    then: str = ""
    """A regular expression for the text right after the token."""
    here: str = ""
    """A regular expression for the text from the token on."""
    after: Words = ""
    """The token before has one of these texts."""
    after2: Words = ""
    """The token before that has one of these texts."""
    inside: Words = ""
    """The innermost open bracket is one of these."""
    item: Words = ""
    """The keyword of the item is one of these."""
    takes: Words = ""
    """All of these kinds could be next."""
    takes_only: Words = ""
    """Just these kinds could be next."""
    takes_at_most: Words = ""
    """No other kinds could be next."""
    is_: Words = ""
    """All of these properties of `Mistake` hold."""
    is_not: Words = ""
    """None of these properties of `Mistake` hold."""

    def matches(self, mistake: Mistake) -> bool:
        """Whether the error meets all conditions."""
        opening = mistake.opening.text if mistake.opening else ""
        text, span = mistake.source.text, mistake.span
        return (
            _is_one(mistake.kind, self.found)
            and not (self.not_found and mistake.kind in _set(self.not_found))
            and _is_one(span.text, self.word)
            and _is_one(mistake.text_before(1), self.after)
            and _is_one(mistake.text_before(2), self.after2)
            and _is_one(opening, self.inside)
            and _is_one(mistake.item, self.item)
            and mistake.accepts >= _set(self.takes)
            and (not self.takes_only or mistake.accepts == _set(self.takes_only))
            and (not self.takes_at_most or mistake.accepts <= _set(self.takes_at_most))
            and (
                not self.then or re.compile(self.then).match(text, span.end) is not None
            )
            and (
                not self.here
                or re.compile(self.here).match(text, span.start) is not None
            )
            and all(getattr(mistake, name) for name in _set(self.is_))
            and not any(getattr(mistake, name) for name in _set(self.is_not))
        )


def hint(patterns: Iterable[Pattern], mistake: Mistake) -> str:
    """Return the hint of the first pattern that matches, or "".

    In a hint, `$found` and `$before` are the token and the one before it.
    """
    text = next((each.hint for each in patterns if each.matches(mistake)), "")
    found, before = mistake.span.text, mistake.text_before(1)
    return Template(text).safe_substitute(found=found, before=before)


def _set(words: Words) -> frozenset[str]:
    return frozenset(words.split()) if isinstance(words, str) else words


def _is_one(word: str, words: Words) -> bool:
    return not words or word in _set(words)
