"""Recognisers of typos: misspelt keywords, and names that can't be names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kerngen.ir.nodes import REDUCE_KINDS
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import faults, wording
from kerngen.syntax.faults_foreign import ForeignType
from kerngen.syntax.lexemes import Lexeme
from kerngen.syntax.mistakes.foreign_types import OWN_TYPE, TYPES
from kerngen.syntax.mistakes.mistake import Mistake

_LIKE_A_NAME: Final = re.compile(r"\w+(?:[-.']\w+)*'*", re.ASCII)
_BEGINS_WITH_DIGIT: Final = re.compile(r"\d+[A-Za-z_]\w*", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z]\w*", re.ASCII)
_SHORTEST: Final = 3

# Words of the language that introduce a name, by what may be before them.
_BEFORE_NAMES: Final = {
    "": ("let", "host", "require"),
    ";": ("let", "host", "require"),
    "{": ("let", "host", "require"),
    "}": ("let", "host", "require", "kernel", "struct", "const", "schedule"),
    "(": ("mut",),
    ",": ("mut",),
    "=": ("if",),
    "else": ("if",),
}
_WANTS_NAMES: Final = frozenset(
    {"NAME", "REDUCE", "CLOSE_PAREN", "CLOSE_BRACE", "MUT", "AT", "DOC"}
)
_AFTER_NAMES: Final = frozenset({"COLON", "OPEN_PAREN", "ASSIGN", "WHEN"})


def misspelt_word(mistake: Mistake) -> Diagnostic | None:
    """`kernal f(...)`, `lett t = ...`, `x > 0 adn y > 0`."""
    here = Lexeme(mistake.span.text, mistake.span.start)
    if mistake.kind == "NAME":
        wanted = mistake.accepts & wording.KEYWORDS - {"REDUCE"}
        if found := _misspelt(mistake, here, (word.lower() for word in wanted)):
            return found
    before = mistake.before
    if before is None or mistake.kind not in {"NAME", "REDUCE"} or mistake.starts_line:
        return None
    known = _BEFORE_NAMES.get(mistake.text_before(2), ())
    return _misspelt(mistake, before, known)


def misspelt_reduction(mistake: Mistake) -> Diagnostic | None:
    """`sun[j] x[j]`."""
    before = mistake.before
    starts = mistake.kind in wording.VALUE_STARTS and not mistake.starts_line
    if before is None or before.text != "]" or not starts:
        return None
    named, _ = mistake.subscripted() or (before, ())
    return _misspelt(mistake, named, REDUCE_KINDS)


def _misspelt(
    mistake: Mistake, lexeme: Lexeme, known: Iterable[str]
) -> Diagnostic | None:
    words = sorted(known)
    is_word = _WORD.fullmatch(lexeme.text) and len(lexeme.text) >= _SHORTEST
    suggestion = closest(lexeme.text, words) if is_word else ""
    if not suggestion or lexeme.text in words:
        return None
    span = mistake.lexeme_span(lexeme)
    return faults.UnknownWord(span=span, word=lexeme.text, suggestion=suggestion)


def not_a_name(mistake: Mistake) -> Diagnostic | None:
    """`kernel my-kernel(...)`, `let x' = ...`, `kernel 2d(...)`."""
    at = mistake.span.start
    before = mistake.before
    wants_name = mistake.accepts <= _WANTS_NAMES and "NAME" in mistake.accepts
    if wants_name and mistake.text_before(1) != ".":
        match = _BEGINS_WITH_DIGIT.match(mistake.source.text, at)
        return match and _not_a_name(mistake, at, match[0])
    joined = before is not None and before.end == at and _WORD.fullmatch(before.text)
    introduces = mistake.accepts & _AFTER_NAMES and "OR" not in mistake.accepts
    is_sign = mistake.span.text in {"-", ".", "'"}
    if before is None or not (joined and is_sign):
        return None
    if mistake.kind != "CHARACTER" and not introduces:
        return None
    match = _LIKE_A_NAME.match(mistake.source.text, before.start)
    assert match is not None, "it begins with a word"
    return _not_a_name(mistake, before.start, match[0])


def _not_a_name(mistake: Mistake, start: int, name: str) -> Diagnostic | None:
    last = name.rpartition(".")[2]
    if mistake.text_before(2) == ":" and (last in TYPES or OWN_TYPE.fullmatch(last)):
        span = Span(mistake.source, start, start + len(name))
        return ForeignType(span=span, found=name, instead=TYPES.get(last, last))
    instead = re.sub(r"\W", "_", name.replace("'", "_prime"))
    instead = instead if instead[:1].isalpha() else f"_{instead}"
    if instead == name:
        return None
    span = Span(mistake.source, start, start + len(name))
    return faults.NotAName(span=span, name=name, instead=instead)
