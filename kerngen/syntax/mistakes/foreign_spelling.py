"""Recognisers of words and signs that other languages have: `&&`, `#include`, `assert!(x)`."""

from __future__ import annotations

import re

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import faults_foreign, wording
from kerngen.syntax.lexemes import Lexeme
from kerngen.syntax.mistakes import foreign
from kerngen.syntax.mistakes.mistake import Mistake

_ITEM_NEXT = re.compile(r"[ \t]+(fn|kernel|struct|const)\b")
"""The item's keyword behind `def` in `def kernel f(...)`."""
_ADDRESS_SPACE = re.compile(r"\s*<\s*(\w+)[^<>\n]*>")
"""What follows `var` in WGSL's `var<workgroup> tile: ...`."""
_DIRECTIVE = re.compile(r"#\s*(\w+)")
_LONGEST_OPERATOR = 3
_DECLARING = frozenset({"var", "auto"})
# Words before a name of the user's own.
_INTRODUCE = {"fn", "kernel", "struct", "const", "schedule", "let", "host"}


def foreign_operator(mistake: Mistake) -> Diagnostic | None:
    """Find the longest operator of another language around the start of the token."""
    at, text = mistake.span.start, mistake.source.text
    is_operator = mistake.kind == "AT" and mistake.follows_value
    alone = mistake.kind == "CHARACTER" or is_operator
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
                return faults_foreign.ForeignSpelling(
                    span=span, found=found, instead=instead
                )
    return None


def macro(mistake: Mistake) -> Diagnostic | None:
    """`assert!(x > 0.0)`."""
    before, at = mistake.before, mistake.span.start
    is_call = mistake.source.text.startswith("!(", at) and mistake.kind == "CHARACTER"
    if not is_call or before is None or before.end != at:
        return None
    instead = foreign.WORDS.get(before.text, "a call without the '!'")
    span = mistake.lexeme_span(before).to(mistake.span)
    return faults_foreign.ForeignSpelling(
        span=span, found=f"{before.text}!", instead=instead
    )


def directive(mistake: Mistake) -> Diagnostic | None:
    """`#include <metal_stdlib>`."""
    match = _DIRECTIVE.match(mistake.source.text, mistake.span.start)
    instead = foreign.DIRECTIVES.get(match[1]) if match else None
    if match is None or instead is None:
        return None
    span = Span(mistake.source, match.start(), match.end())
    return faults_foreign.ForeignSpelling(span=span, found=match[0], instead=instead)


def foreign_word(mistake: Mistake) -> Diagnostic | None:
    """`return x;`, `void f(x: f32)`, `def kernel f(...)`."""
    here = Lexeme(mistake.span.text, mistake.span.start)
    in_parentheses = mistake.opening is not None and mistake.opening.text == "("
    in_brackets = mistake.opening is not None and mistake.opening.text == "["
    in_value = mistake.follows_value
    inside = foreign.EXPRESSION_WORDS if in_value else foreign.PARAMETER_WORDS
    introduced = mistake.text_before(2) in _INTRODUCE or mistake.kind == "CHARACTER"
    for lexeme in filter(None, (None if introduced else mistake.before, here)):
        instead = foreign.WORDS.get(lexeme.text, "")
        if in_parentheses or (in_value and not in_brackets):
            instead = inside.get(lexeme.text, instead)
        if instead:
            if lexeme.text in _DECLARING:
                return _foreign_variable(mistake, lexeme, instead)
            if item := _ITEM_NEXT.match(mistake.source.text, lexeme.end):
                instead = f"'{item[1]}' alone"
            span = mistake.lexeme_span(lexeme)
            return faults_foreign.ForeignSpelling(
                span=span, found=lexeme.text, instead=instead
            )
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
    return faults_foreign.ForeignSpelling(span=span, found=found, instead=instead)
