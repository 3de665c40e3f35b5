"""Patterns of syntax errors: the token found, those around it, those expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from string import Template
from typing import Final, TypeAlias, final

from kerngen.syntax.mistakes.foreign_types import OWN_TYPE
from kerngen.syntax.mistakes.mistake import Mistake
from kerngen.syntax.wording import ITEMS, VALUE_STARTS

Words: TypeAlias = str | frozenset[str]
"""Several words: a set, or a text with blanks between them."""

ENDS: Final = ITEMS | frozenset(
    "CLOSE_PAREN CLOSE_BRACKET CLOSE_BRACE SEMICOLON COMMA $END".split()
)
"""The kinds of tokens that end a value."""

_OPERATORS: Final = frozenset(
    "= + - * / % < > & | ^ ~ <= >= == != << >> += -= *= /= and or not".split()
)
_OPENS: Final = {"CLOSE_PAREN": "(", "CLOSE_BRACKET": "["}
_OF_MISTAKES: Final = (
    "begins_branch begins_statement ends_statement follows_value follows_word "
    "has_opening in_file in_target is_nested_item starts_line starts_statement"
)


def _words_before(mistake: Mistake) -> set[str]:
    """Return the words of the statement before a mistake."""
    return {lexeme.text for lexeme in mistake.statement()}


def _lacks_value(mistake: Mistake) -> bool:
    ends = mistake.kind in ENDS or mistake.span.text in _OPERATORS
    is_operator = mistake.text_before(1) in _OPERATORS
    return "FLOAT" in mistake.accepts and is_operator and ends


CONDITIONS: Final[Mapping[str, Callable[[Mistake], bool]]] = {
    **{name: attrgetter(name) for name in _OF_MISTAKES.split()},
    "follows": lambda m: m.before is not None,
    "follows_number": lambda m: m.text_before(1).isdecimal(),
    # `0,5`
    "follows_number_and_comma": lambda m: m.text_before(2).isdecimal(),
    "follows_item_word": lambda m: "" != m.item == m.text_before(1),
    "repeats": lambda m: m.span.text == m.text_before(1),
    "lacks_value": _lacks_value,
    # On the line of the token before it.
    "begins_value": lambda m: m.kind in VALUE_STARTS and not m.starts_line,
    # The ':' behind a name.
    "begins_slice": lambda m: m.kind == "COLON" and m.follows_word,
    "closes_nothing": lambda m: m.bracket != _OPENS.get(m.kind, m.bracket),
    "declares_value": lambda m: not _words_before(m).isdisjoint(("let", "host")),
    "in_schedule": lambda m: m.item == "schedule" and not m.in_file,
    "in_value": lambda m: m.bracket in {"(", "["},
    # The innermost bracket follows a type: `f32[`.
    "in_axes": lambda m: OWN_TYPE.fullmatch(m.before_bracket(1)) is not None,
    # A value, or the token after one, in the brackets of an element.
    "in_subscript": lambda m: (
        ("FLOAT" in m.accepts or m.follows_value)
        and m.bracket == "["
        and m.before_bracket(2) != ":"
    ),
}
"""Conditions that a pattern may ask for by name, some of them properties of a mistake."""


@final
@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of syntax errors; a condition that is left out is always met.

    `Pattern("...", found="COMMA", takes="SEMICOLON")` matches a ',' where a ';' is allowed.
    """

    hint: str = ""
    """The hint for a mistake that matches."""
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
    has: Words = ""
    """All of these words are in the statement before the token."""
    takes: Words = ""
    """All of these kinds could be next."""
    takes_only: Words = ""
    """Just these kinds could be next."""
    takes_at_most: Words = ""
    """No other kinds could be next."""
    is_: Words = ""
    """All of these `CONDITIONS` hold."""
    is_not: Words = ""
    """None of these `CONDITIONS` hold."""

    def matches(self, mistake: Mistake) -> bool:
        """Whether the error meets all conditions."""
        text, span = mistake.source.text, mistake.span
        return (
            _is_one(mistake.kind, self.found)
            and not (self.not_found and mistake.kind in _set(self.not_found))
            and _is_one(span.text, self.word)
            and _is_one(mistake.text_before(1), self.after)
            and _is_one(mistake.text_before(2), self.after2)
            and _is_one(mistake.bracket, self.inside)
            and _is_one(mistake.item, self.item)
            and (not self.has or _words_before(mistake) >= _set(self.has))
            and mistake.accepts >= _set(self.takes)
            and (not self.takes_only or mistake.accepts == _set(self.takes_only))
            and (not self.takes_at_most or mistake.accepts <= _set(self.takes_at_most))
            and re.compile(self.then).match(text, span.end) is not None
            and re.compile(self.here).match(text, span.start) is not None
            and all(CONDITIONS[name](mistake) for name in _set(self.is_))
            and not any(CONDITIONS[name](mistake) for name in _set(self.is_not))
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
