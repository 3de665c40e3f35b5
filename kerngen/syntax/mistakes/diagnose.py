"""From the parser's syntax error to a diagnostic in the user's words.

`RECOGNISERS` knows the common mistakes, in the order in which they are tried.  What none
of them recognises is an `UnexpectedToken`, with the hint of a pattern in `hints` if one
matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import TypeAlias

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import faults, wording
from kerngen.syntax.lexemes import Lexeme, lexemes
from kerngen.syntax.mistakes import foreign_syntax, hints, spelling
from kerngen.syntax.mistakes.binders import (
    binder_remedy,
    mut_remedy,
    separates_condition,
)
from kerngen.syntax.mistakes.foreign import REDUCTIONS
from kerngen.syntax.mistakes.mistake import Mistake
from kerngen.syntax.mistakes.patterns import Pattern, hint

_ENDS = wording.CLOSERS | wording.ITEMS | {"DOC"}
_INNER_ENDS = _ENDS | {"SEMICOLON", "ARROW", "OPEN_BRACE", "LET", "HOST", "REQUIRE"}

# The terminal that closes a bracket, and those that can't be inside it.
_CLOSING = {
    "(": ("CLOSE_PAREN", _INNER_ENDS),
    "[": ("CLOSE_BRACKET", _INNER_ENDS | {"COLON", "ASSIGN", "ASSIGN_OP", "IF"}),
    "{": ("CLOSE_BRACE", _ENDS),
}

_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+|0|[1-9][0-9]*|[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)"
)
_LIKE_A_NUMBER = re.compile(
    r"(?<![\w.\])])(?!0[xX][^.]*[eE][+-])[0-9.]*[0-9][eE][+-][0-9][\w.]*"
    r"|(?<![\w.\])])(?:[0-9][\w.]*|\.[0-9][\w.]*)"
)

_IN_A_NUMBER = re.compile(r"[\w.]|(?<=[0-9][eE])[+-](?=[0-9])")


_MORE = re.compile(r"[ \t]*[^\s)\];,]")
"""Text that follows a closing bracket on its line: then the bracket is one too many."""

_WORD_NEXT = re.compile(r"[ \t]+(\w+)")


_NAMED_AFTER = {":": "a type", ".": "a member", "@": "an attribute"}

_AFTER_INDEX = frozenset({"COMMA", "LESS", "CLOSE_BRACKET"})


_SEPARATES_PARAMETERS = Pattern(found="SEMICOLON", inside="(", then=hints.PARAMETER)

_Recogniser: TypeAlias = Callable[[Mistake], Diagnostic | None]


def diagnose(mistake: Mistake) -> Diagnostic:
    """Return the diagnostic for a syntax error, by the first recogniser that fits."""
    found = (recognise(mistake) for recognise in RECOGNISERS)
    return next(filter(None, found), None) or _unexpected(mistake)


def _of(
    fault: Callable[..., Diagnostic],
    pattern: Pattern,
    place: Callable[[Mistake], Span] = attrgetter("span"),
) -> _Recogniser:
    """Return a recogniser of a fault that has a span and no other fields, by a pattern."""
    return lambda mistake: (
        fault(span=place(mistake)) if pattern.matches(mistake) else None
    )


def _when(pattern: Pattern, recogniser: _Recogniser) -> _Recogniser:
    """Return a recogniser that is asked only about the mistakes that match a pattern."""
    return lambda mistake: recogniser(mistake) if pattern.matches(mistake) else None


def _behind(mistake: Mistake) -> Span:
    """Return the place right behind the token before, where something is missing."""
    end = mistake.before.end if mistake.before else mistake.span.start
    return Span(mistake.source, end, end)


def _from_before(mistake: Mistake) -> Span:
    """Return the place of the token before and this one."""
    before = mistake.before
    return mistake.lexeme_span(before).to(mistake.span) if before else mistake.span


def _hinted(
    fault: Callable[..., Diagnostic], patterns: tuple[Pattern, ...], where: Pattern
) -> _Recogniser:
    """Return a recogniser of a fault whose hint is in a table; no row, no fault."""

    def recognise(mistake: Mistake) -> Diagnostic | None:
        remedy = hint(patterns, mistake) if where.matches(mistake) else ""
        return fault(span=mistake.span, remedy=remedy) if remedy else None

    return recognise


def _unexpected(mistake: Mistake) -> Diagnostic:
    span = mistake.span
    if mistake.kind == "CHARACTER":
        return faults.UnexpectedCharacter(span=span, character=span.text)
    blamed = _unclosed(mistake)
    return faults.UnexpectedToken(
        span=span,
        found=_found(mistake),
        expected=_expected(mistake),
        opening=mistake.lexeme_span(blamed) if blamed else None,
        remedy=_closed(mistake) if blamed else hint(hints.UNEXPECTED, mistake),
    )


def _expected(mistake: Mistake) -> tuple[str, ...]:
    """Return the expected terminals in words; for a name, its kind: 'a type' after ':'."""
    name = _NAMED_AFTER.get(mistake.text_before(1))
    if name and "NAME" in mistake.accepts <= {"NAME", "REDUCE"}:
        return (name,)
    return wording.describe(mistake.accepts)


def _closed(mistake: Mistake) -> str:
    depth = sum({"(": 1, ")": -1}.get(x.text, 0) for x in mistake.statement())
    if mistake.kind == "COMMA" and mistake.bracket == "(" and depth == 1:
        return "There are no tuples: a vector is made by its type, 'vec3f(x, y, z)'."
    closer = {"(": ")", "[": "]", "{": "}"}[mistake.bracket]
    return f"Close it with '{closer}'."


def _found(mistake: Mistake) -> str:
    if mistake.kind == "DOC":
        return "a doc comment"
    text = mistake.span.text
    return f"'{_short(text)}'" if text else "the end of the file"


def _unclosed(mistake: Mistake) -> Lexeme | None:
    """The open bracket, if the token found shows that it was to be closed before."""
    if mistake.opening is None or _SEPARATES_PARAMETERS.matches(mistake):
        return None
    if mistake.kind in wording.ITEMS and mistake.is_nested_item:
        return None
    stray = mistake.kind in {"CLOSE_PAREN", "CLOSE_BRACKET"}
    # At the end of a line, it may be meant to close the brace.
    if stray and mistake.bracket == "{" and _MORE.match(*mistake.rest):
        return None
    closer, ends = _CLOSING[mistake.bracket]
    # Parentheses around a value have just one: a ',' belongs to the list around them.
    if mistake.follows_value and "COMMA" not in mistake.accepts:
        ends = ends | {"COMMA"}
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
    if mistake.kind != "DOC":
        return None
    unended = not mistake.accepts.isdisjoint({"CLOSE_BRACE", "SEMICOLON"})
    unended = unended and mistake.starts_line and _documents_item(mistake)
    return None if unended else faults.MisplacedDoc(span=mistake.span)


def _stray_doc(mistake: Mistake) -> Diagnostic | None:
    """Recognise a doc comment directly before something that can't have one."""
    if mistake.before and mistake.before.is_doc and mistake.kind != "CHARACTER":
        return faults.MisplacedDoc(span=mistake.lexeme_span(mistake.before))
    return None


def _documents_item(mistake: Mistake) -> bool:
    """Whether an item at the left margin follows a doc comment."""
    for lexeme in lexemes(mistake.source.text, mistake.span.start):
        if not lexeme.is_doc:
            _, column = mistake.source.position(lexeme.start)
            return column == 1 and lexeme.text.upper() in wording.ITEMS
    return False


def _malformed_number(mistake: Mistake) -> Diagnostic | None:
    """Recognise a number that the lexer split: `1e5.0`, `.5`, `0b101` or `1_000`."""
    # The error may be at any piece of the number, so it is looked for around the token.
    pieces = [mistake.span]
    if mistake.before and not mistake.before.is_doc:
        pieces.insert(0, mistake.lexeme_span(mistake.before))
    text, begin = mistake.source.text, pieces[0].start
    while begin and _IN_A_NUMBER.match(text, begin - 1):
        begin -= 1
    end = mistake.span.end
    while end < len(text) and _IN_A_NUMBER.match(text, end):
        end += 1
    for match in _LIKE_A_NUMBER.finditer(text, begin, end):
        span = Span(mistake.source, match.start(), match.end())
        if span.start > mistake.span.start:
            break
        near = any(p.start <= span.end and span.start <= p.end for p in pieces)
        if near and not _NUMBER.fullmatch(span.text):
            instead = spelling.as_written_here(span.text)
            return faults.MalformedNumber(
                span=span, number=_short(span.text), instead=instead
            )
    return None


def _reserved_word(mistake: Mistake) -> Diagnostic | None:
    if mistake.kind == "MUT":
        return faults.MisplacedMut(span=mistake.span, remedy=mut_remedy(mistake))
    starts = mistake.kind in wording.ITEMS | {"LET", "HOST"} and mistake.starts_line
    starts = starts and not (mistake.item == "struct" and mistake.is_nested_item)
    is_word = mistake.kind in wording.KEYWORDS and not starts
    if not is_word or "NAME" not in mistake.accepts:
        return None
    return faults.ReservedWord(span=mistake.span, remedy=_reserved_remedy(mistake))


def _reserved_remedy(mistake: Mistake) -> str:
    in_struct = mistake.item == "struct" and mistake.has_opening
    if mistake.kind == "STRUCT" and in_struct:
        return _inner_struct_remedy(mistake)
    return hint(hints.RESERVED, mistake)


def _inner_struct_remedy(mistake: Mistake) -> str:
    """`struct A { struct B { x: f32 } }`, `b: struct B` and `b: struct { x: f32 }`."""
    name = _WORD_NEXT.match(mistake.source.text, mistake.span.end)
    field = mistake.text_before(2) if mistake.text_before(1) == ":" else "b"
    if name and mistake.text_before(1) == ":":
        return f"Write the name of the struct alone: '{field}: {name[1]}'."
    type_ = name[1] if name else "B"
    return (
        f"Move the 'struct' to the top of the file; a field names its type: "
        f"'{field}: {type_}'."
    )


def _index_not_bare(mistake: Mistake) -> Diagnostic | None:
    """Recognise a `let` or reduction with an index that is no name: `sum[2 * i]`."""
    if mistake.kind in wording.CLOSERS | {"SEMICOLON", "COMMA", "CHARACTER"}:
        return None
    if mistake.bracket != "[" or (mistake.kind == "ASSIGN" and mistake.in_target):
        return None
    after_dot = mistake.before is not None and mistake.before.text == "."
    wants_name = mistake.accepts <= {"NAME", "CLOSE_BRACKET"} and not after_dot
    is_bare = mistake.accepts - {"WHEN"} == _AFTER_INDEX
    if wants_name or is_bare or separates_condition(mistake):
        return faults.IndexNotBare(span=mistake.span, remedy=binder_remedy(mistake))
    return None


# In this order: a recogniser that comes later may fit mistakes of an earlier one.
RECOGNISERS: tuple[_Recogniser, ...] = (
    _unterminated_string,
    _of(faults.MisplacedFileDoc, Pattern(found="FILE_DOC")),
    _misplaced_doc,
    _when(Pattern(is_="follows starts_line"), foreign_syntax.division_comment),
    _of(
        faults.UnnamedAxis,
        Pattern(word=": ? * .", is_="in_axes", is_not="begins_slice"),
    ),
    _of(faults.Slice, Pattern(found="COLON", is_="in_subscript")),
    _of(faults.Slice, Pattern(here=r"\.\.\.", is_="in_subscript")),
    _index_not_bare,
    spelling.not_a_name,
    spelling.directive,
    spelling.macro,
    spelling.foreign_operator,
    _malformed_number,
    _when(Pattern(found="OPEN_PAREN", after2="."), foreign_syntax.method_call),
    _when(
        Pattern(found="NAME", takes="ASSIGN OPEN_BRACKET", is_="follows"),
        foreign_syntax.undeclared_value,
    ),
    spelling.foreign_word,
    spelling.misspelt_word,
    _stray_doc,
    _when(
        Pattern(not_found="OPEN_PAREN", takes_only="COLON", is_="follows"),
        foreign_syntax.name_and_type,
    ),
    _when(Pattern(is_="follows"), foreign_syntax.foreign_type),
    _when(
        Pattern(found="ASSIGN", inside="(", after2="( ,"), foreign_syntax.named_argument
    ),
    _of(faults.MissingElse, Pattern(takes_only="ELSE"), _behind),
    _hinted(faults.ForeignIf, hints.IFS, Pattern()),
    _when(
        Pattern(found="STRING", after2=frozenset(REDUCTIONS)),
        foreign_syntax.foreign_reduction,
    ),
    _when(
        Pattern(
            found=wording.VALUE_STARTS | {"REDUCE", "IF"},
            after="]",
            is_="follows_value",
            is_not="starts_line",
        ),
        foreign_syntax.foreign_reduction,
    ),
    spelling.misspelt_reduction,
    foreign_syntax.reduction_form,
    _when(Pattern(found="OPEN_BRACKET", after="]"), foreign_syntax.separate_subscripts),
    foreign_syntax.generic_call,
    _of(faults.ChainedComparison, Pattern(found=wording.COMPARISONS, takes="AND")),
    _hinted(
        faults.AssignmentInExpression,
        hints.ASSIGNMENTS,
        Pattern(found="ASSIGN", takes="OR"),
    ),
    _of(faults.ComparisonAsStatement, Pattern(found="EQUAL", takes="ASSIGN")),
    _of(faults.SemicolonAfterValue, Pattern(found="SEMICOLON", takes="CLOSE_BRACE OR")),
    _of(
        faults.MissingSemicolon,
        Pattern(takes="SEMICOLON", is_="ends_statement"),
        _behind,
    ),
    _of(
        faults.WrittenType, Pattern(found="COLON", takes="ASSIGN", is_="declares_value")
    ),
    _of(faults.EmptyBrackets, Pattern(found="CLOSE_BRACKET", after="["), _from_before),
    _reserved_word,
)
