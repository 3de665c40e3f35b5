"""Recognisers of typos, and of words and operators from other languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kerngen.ir.nodes import REDUCE_KINDS
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import faults, wording
from kerngen.syntax.faults import ForeignType
from kerngen.syntax.lexemes import Lexeme
from kerngen.syntax.mistakes import foreign
from kerngen.syntax.mistakes.foreign_types import OWN_TYPE, TYPES
from kerngen.syntax.mistakes.mistake import Mistake

_LIKE_A_NAME: Final = re.compile(r"\w+(?:[-.']\w+)*'*", re.ASCII)
"""A name with signs that names can't have: `my-kernel`, `x'`."""
_BEGINS_WITH_DIGIT: Final = re.compile(r"\d+[A-Za-z_]\w*", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z]\w*", re.ASCII)
_SHORTEST: Final = 3
"""The fewest letters of a word that may be a misspelt keyword: a shorter one is a name."""

# Words of the language that introduce a name, by the token before them, "" for none.
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
    """Recognise a typo in a keyword: `kernal f(...)`, `x > 0 adn y > 0`."""
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
    """Recognise a typo in a reduction: `sun[j] x[j]`."""
    before = mistake.before
    starts = mistake.kind in wording.VALUE_STARTS and not mistake.starts_line
    if before is None or before.text != "]" or not starts:
        return None
    named, _ = mistake.subscripted() or (before, ())
    return _misspelt(mistake, named, REDUCE_KINDS)


def _misspelt(
    mistake: Mistake, lexeme: Lexeme, known: Iterable[str]
) -> Diagnostic | None:
    """Report a word that is similar to a known one, but to none exactly equal."""
    words = sorted(known)
    is_word = _WORD.fullmatch(lexeme.text) and len(lexeme.text) >= _SHORTEST
    suggestion = closest(lexeme.text, words) if is_word else ""
    if not suggestion or lexeme.text in words:
        return None
    span = mistake.lexeme_span(lexeme)
    return faults.UnknownWord(span=span, suggestion=suggestion)


def not_a_name(mistake: Mistake) -> Diagnostic | None:
    """Recognise an invalid name: `kernel my-kernel(...)`, `kernel 2d(...)`."""
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


_ITEM_NEXT = re.compile(r"[ \t]+(fn|kernel|struct|const)\b")
"""The item's keyword behind `def` in `def kernel f(...)`."""
_ADDRESS_SPACE = re.compile(r"\s*<\s*(\w+)[^<>\n]*>")
"""The address space after `var` in WGSL's `var<workgroup> tile: ...`."""
_DIRECTIVE = re.compile(r"#\s*(\w+)")
_LONGEST_OPERATOR = 3
"""The characters of the longest operators in `foreign.OPERATORS`, `<<=`."""
_DECLARING = frozenset({"var", "auto"})
# Words before a name of the user's own.
_INTRODUCE = {"fn", "kernel", "struct", "const", "schedule", "let", "host"}


def foreign_operator(mistake: Mistake) -> Diagnostic | None:
    """Recognise an operator of another language, such as `&&`, around the token."""
    at, text = mistake.span.start, mistake.source.text
    is_operator = mistake.kind == "AT" and mistake.follows_value
    alone = mistake.kind == "CHARACTER" or is_operator
    # The lexer may have split it, `&` and `&`: try each text around the token, longest first.
    for length in range(_LONGEST_OPERATOR, 0 if alone else 1, -1):
        for start in range(max(at - length + 1, 0), at + 1):
            found = text[start : start + length]
            instead = foreign.OPERATORS.get(found)
            if found[:1] == "." != found[1:] and mistake.text_before(2).isdecimal():
                continue  # it ends a number, as in '2.*x'
            if found == "=>" and mistake.kind == "GREATER":
                instead = "'='"
            if instead:
                span = Span(mistake.source, start, start + len(found))
                return faults.ForeignSpelling(span=span, found=found, instead=instead)
    return None


def macro(mistake: Mistake) -> Diagnostic | None:
    """Recognise a macro call: `assert!(x > 0.0)`."""
    before, at = mistake.before, mistake.span.start
    is_call = mistake.source.text.startswith("!(", at) and mistake.kind == "CHARACTER"
    if not is_call or before is None or before.end != at:
        return None
    instead = foreign.WORDS.get(before.text, "a call without the '!'")
    span = mistake.lexeme_span(before).to(mistake.span)
    return faults.ForeignSpelling(span=span, found=f"{before.text}!", instead=instead)


def directive(mistake: Mistake) -> Diagnostic | None:
    """Recognise a preprocessor directive: `#include <metal_stdlib>`."""
    match = _DIRECTIVE.match(mistake.source.text, mistake.span.start)
    instead = foreign.DIRECTIVES.get(match[1]) if match else None
    if match is None or instead is None:
        return None
    span = Span(mistake.source, match.start(), match.end())
    return faults.ForeignSpelling(span=span, found=match[0], instead=instead)


def foreign_word(mistake: Mistake) -> Diagnostic | None:
    """Recognise another language's keyword: `return x;`, `def kernel f(...)`."""
    here = Lexeme(mistake.span.text, mistake.span.start)
    in_value = mistake.follows_value
    inside = foreign.EXPRESSION_WORDS if in_value else foreign.PARAMETER_WORDS
    introduced = mistake.text_before(2) in _INTRODUCE or mistake.kind == "CHARACTER"
    for lexeme in filter(None, (None if introduced else mistake.before, here)):
        instead = foreign.WORDS.get(lexeme.text, "")
        if mistake.bracket == "(" or (in_value and mistake.bracket != "["):
            instead = inside.get(lexeme.text, instead)
        if instead:
            if lexeme.text in _DECLARING:
                return _foreign_variable(mistake, lexeme, instead)
            if item := _ITEM_NEXT.match(mistake.source.text, lexeme.end):
                instead = f"'{item[1]}' alone"
            span = mistake.lexeme_span(lexeme)
            return faults.ForeignSpelling(span=span, found=lexeme.text, instead=instead)
    return None


def _foreign_variable(mistake: Mistake, word: Lexeme, instead: str) -> Diagnostic:
    """`var t = 1.0;`, `var<workgroup> t: array<f32, 64>;`."""
    span, found = mistake.lexeme_span(word), word.text
    if space := _ADDRESS_SPACE.match(mistake.source.text, word.end):
        span = Span(mistake.source, word.start, space.end())
        found = f"{word.text}<{space[1]}>"
        instead = foreign.ADDRESS_SPACES.get(space[1], instead)
    elif mistake.accepts >= wording.ITEMS:
        instead = "a constant: 'const A: f32 = 1.0;'"
    return faults.ForeignSpelling(span=span, found=found, instead=instead)


# Numbers of other languages

# A decimal number with any exponent and suffix: `1.`, `.5f`, `10UL`, `1.0d`.
_OTHERS: Final = re.compile(
    r"(?P<whole>\d*)(?:(?P<point>\.)(?P<fraction>\d*))?(?P<exponent>[eE][+-]?\d+)?"
    r"(?P<suffix>(?:[fiuFIUhHlLdD]|[fiu]\d+|[lLuU]{2,3})?)"
)
_SUFFIXED: Final = re.compile(r"(0[xX][0-9a-fA-F]+)[uUlLi]+")
"""A hexadecimal number with a suffix: `0xFFu`."""
_PRODUCT: Final = re.compile(r"(?!0[xXbBoO])(\d+(?:\.\d+)?)(?![eE]$)([A-Za-z_]\w*)")


def as_written_here(text: str) -> str:
    """Return another language's number literal as it is written here, or ""."""
    text = text.replace("_", "") if text[-1] != "_" else text
    if text.isdecimal():
        # Python turns only so many digits at once into a number.
        return "".join(str(int(digit)) for digit in text).lstrip("0") or "0"
    try:
        return str(int(text, 0))
    except ValueError:
        pass
    if match := _SUFFIXED.fullmatch(text):
        return match[1]
    if match := _OTHERS.fullmatch(text):
        exponent = match["exponent"] or ""
        is_float = match["point"] or exponent or match["suffix"][:1] in set("fFhHdD")
        if not match["suffix"] or match["whole"] or match["fraction"]:
            point = (
                f".{match['fraction'] or 0}" if match["point"] or not exponent else ""
            )
            tail = f"{point}{exponent}" if is_float else ""
            return f"{match['whole'] or 0}{tail}"
    if match := _PRODUCT.fullmatch(text):
        return f"{match[1]} * {match[2]}"
    return ""
