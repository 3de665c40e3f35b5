"""Syntax errors of the parser as diagnostics in the user's words.

`RECOGNISERS` knows the common mistakes, in the order in which they are tried.  What none
of them recognises is an `UnexpectedToken`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Source, Span
from kerngen.syntax import faults, habits, wording
from kerngen.syntax.lexemes import Lexeme, lexemes

_PAIRS = {")": "(", "]": "[", "}": "{"}

_ENDS = wording.CLOSERS | wording.ITEMS
_INNER_ENDS = _ENDS | {"SEMICOLON", "ARROW", "OPEN_BRACE", "LET", "HOST"}

# The terminal that closes a bracket, and those that can't stand inside it.
_CLOSING = {
    "(": ("CLOSE_PAREN", _INNER_ENDS),
    "[": ("CLOSE_BRACKET", _INNER_ENDS),
    "{": ("CLOSE_BRACE", _ENDS),
}

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LIKE_A_NUMBER = re.compile(r"(?<![\w.\])])(?:[0-9][\w.]*|\.[0-9][\w.]*)")

_AFTER_INDEX = frozenset({"COMMA", "LESS", "CLOSE_BRACKET"})

_FOREIGN_OPERATORS = {
    "&&": "'and'",
    "||": "'or'",
    "!": "'not'",
    "**": "'a * a', or 'pow(a, b)' where a is not negative",
    "?": "'if c { a } else { b }'",
    "/*": "'//' before each line of a comment",
    "#": "'//' before a comment",
    "'": "double quotes",
    "=>": "'->'",
    ":=": "'let name = value;'",
    "%=": "'x = x % y;'",
    "&=": "'x = x & y;'",
    "|=": "'x = x | y;'",
    "^=": "'x = x ^ y;'",
    "++": "'x += 1;'",
}

_FOREIGN_WORDS = {
    "return": "the value alone, as the last thing in the braces",
    "for": "an index on the left, as in 'y[i] = ...;', which ranges over its axis",
    "while": "a reduction or an index in place of a loop",
    "def": "'fn' or 'kernel'",
    "func": "'fn' or 'kernel'",
    "function": "'fn' or 'kernel'",
    "var": "'let'",
    "import": "'use \"file.kern\";'",
    "include": "'use \"file.kern\";'",
    "elif": "'else if'",
}


@final
@dataclass(frozen=True)
class Mistake:
    """An error of the parser and what stands around it.

    `kind` is the terminal found, `accepts` those expected, `before` what stands before
    it and `opening` the innermost bracket that is still open.
    """

    kind: str
    span: Span
    accepts: frozenset[str]
    before: Lexeme | None
    opening: Lexeme | None

    @property
    def source(self) -> Source:
        """The file."""
        return self.span.source

    @property
    def starts_line(self) -> bool:
        """Whether nothing stands before it on its line."""
        if self.before is None:
            return True
        return "\n" in self.source.text[self.before.end : self.span.start]

    def lexeme_span(self, lexeme: Lexeme) -> Span:
        """The span of a piece of the same file."""
        return Span(self.source, lexeme.start, lexeme.end)


_Recogniser: TypeAlias = Callable[[Mistake], Diagnostic | None]


def look_around(kind: str, span: Span, accepts: Iterable[str], begin: int) -> Mistake:
    """Look around a faulty token; `begin` is where its parse began."""
    before: Lexeme | None = None
    opened: list[Lexeme] = []
    for lexeme in lexemes(span.source.text, begin):
        if lexeme.start >= span.start and kind != "$END":
            break
        before = lexeme
        if lexeme.text in _PAIRS.values():
            opened.append(lexeme)
        elif opened and _PAIRS.get(lexeme.text) == opened[-1].text:
            opened.pop()
    if kind == "$END":
        end = before.end if before else begin
        span = Span(span.source, end, end)
    opening = opened[-1] if opened else None
    return Mistake(kind, span, frozenset(accepts), before, opening)


def diagnose(mistake: Mistake) -> Diagnostic:
    """Say what is wrong."""
    found = (recognise(mistake) for recognise in RECOGNISERS)
    return next(filter(None, found), None) or _unexpected(mistake)


def _unexpected(mistake: Mistake) -> Diagnostic:
    span = mistake.span
    if mistake.kind == "CHARACTER":
        return faults.UnexpectedCharacter(span=span, character=span.text)
    blamed = _unclosed(mistake)
    return faults.UnexpectedToken(
        span=span,
        found=f"'{_short(span.text)}'" if span.text else "the end of the file",
        expected=wording.describe(mistake.accepts),
        opening=mistake.lexeme_span(blamed) if blamed else None,
    )


def _unclosed(mistake: Mistake) -> Lexeme | None:
    """The open bracket, if the token found shows that it was to be closed before."""
    if mistake.opening is None:
        return None
    closer, ends = _CLOSING[mistake.opening.text]
    return (
        mistake.opening if closer in mistake.accepts and mistake.kind in ends else None
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _unterminated_string(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind != "CHARACTER" or mistake.span.text != '"':
        return None
    line_end = re.compile(r"[^\r\n]*").match(mistake.source.text, mistake.span.start)
    end = line_end.end() if line_end else mistake.span.end
    return faults.UnterminatedString(span=Span(mistake.source, mistake.span.start, end))


def _misplaced_doc(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind == "FILE_DOC":
        return faults.MisplacedFileDoc(span=mistake.span)
    if mistake.kind == "DOC":
        return faults.MisplacedDoc(span=mistake.span)
    if mistake.before and mistake.before.is_doc:
        return faults.MisplacedDoc(span=mistake.lexeme_span(mistake.before))
    return None


def _malformed_number(mistake: Mistake) -> Diagnostic | None:
    first = mistake.before.start if mistake.before else mistake.span.start
    line_start = mistake.source.text.rfind("\n", 0, first) + 1
    for match in _LIKE_A_NUMBER.finditer(mistake.source.text, line_start):
        if match.start() > mistake.span.start:
            break
        if match.end() >= first and not _NUMBER.fullmatch(match[0]):
            span = Span(mistake.source, match.start(), match.end())
            return faults.MalformedNumber(span=span, number=_short(match[0]))
    return None


def _foreign_operator(mistake: Mistake) -> Diagnostic | None:
    """Find an operator of another language that begins at or just before the token."""
    at = mistake.span.start
    places = [(max(at - 1, 0), at + 1), (at, at + 2)]
    if mistake.kind == "CHARACTER":
        places.append((at, at + 1))
    for start, end in places:
        found = mistake.source.text[start:end]
        if instead := _FOREIGN_OPERATORS.get(found):
            span = Span(mistake.source, start, start + len(found))
            return habits.ForeignSpelling(span=span, found=found, instead=instead)
    return None


def _foreign_word(mistake: Mistake) -> Diagnostic | None:
    here = Lexeme(mistake.span.text, mistake.span.start)
    for lexeme in filter(None, (mistake.before, here)):
        if instead := _FOREIGN_WORDS.get(lexeme.text):
            span = mistake.lexeme_span(lexeme)
            return habits.ForeignSpelling(span=span, found=lexeme.text, instead=instead)
    return None


def _chained_comparison(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind in wording.COMPARISONS and "AND" in mistake.accepts:
        return habits.ChainedComparison(span=mistake.span)
    return None


def _assign_or_compare(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind == "ASSIGN" and "OR" in mistake.accepts:
        return habits.AssignmentInExpression(span=mistake.span)
    if mistake.kind == "EQUAL" and "ASSIGN" in mistake.accepts:
        return habits.ComparisonAsStatement(span=mistake.span)
    return None


def _semicolon(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind == "SEMICOLON" and {"CLOSE_BRACE", "OR"} <= mistake.accepts:
        return habits.SemicolonAfterValue(span=mistake.span)
    ends = mistake.starts_line or mistake.kind in {"CLOSE_BRACE", "$END"}
    if "SEMICOLON" in mistake.accepts and ends and mistake.before:
        end = mistake.before.end
        return habits.MissingSemicolon(span=Span(mistake.source, end, end))
    return None


def _written_type(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind == "COLON" and "ASSIGN" in mistake.accepts:
        return habits.WrittenType(span=mistake.span)
    return None


def _empty_brackets(mistake: Mistake) -> Diagnostic | None:
    before = mistake.before
    if mistake.kind == "CLOSE_BRACKET" and before and before.text == "[":
        return habits.EmptyBrackets(span=mistake.lexeme_span(before).to(mistake.span))
    return None


def _reserved_word(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind == "MUT":
        return habits.MisplacedMut(span=mistake.span)
    starts = mistake.kind in wording.ITEMS | {"LET", "HOST"} and mistake.starts_line
    is_word = mistake.kind in wording.KEYWORDS and not starts
    if is_word and "NAME" in mistake.accepts:
        return habits.ReservedWord(span=mistake.span, word=mistake.span.text)
    return None


def _index_not_bare(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind in wording.CLOSERS | {"SEMICOLON", "COMMA"}:
        return None
    if mistake.opening is None or mistake.opening.text != "[":
        return None
    after_dot = mistake.before is not None and mistake.before.text == "."
    wants_name = mistake.accepts <= {"NAME", "CLOSE_BRACKET"} and not after_dot
    if wants_name or mistake.accepts == _AFTER_INDEX:
        return habits.IndexNotBare(span=mistake.span)
    return None


RECOGNISERS: tuple[_Recogniser, ...] = (
    _unterminated_string,
    _misplaced_doc,
    _malformed_number,
    _foreign_operator,
    _foreign_word,
    _chained_comparison,
    _assign_or_compare,
    _semicolon,
    _written_type,
    _empty_brackets,
    _reserved_word,
    _index_not_bare,
)
