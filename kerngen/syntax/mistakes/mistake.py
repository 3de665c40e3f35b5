"""A syntax error with the parser's state: the token found, those expected, and before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from lark import Token

from kerngen.source.text import Source, Span
from kerngen.syntax.lalr import END, Stack, UnexpectedError
from kerngen.syntax.lexemes import Lexeme
from kerngen.syntax.wording import ITEMS

_NAMED_KERNEL = frozenset({"OPEN_PAREN", "ASSIGN"})
_STATEMENT = re.compile(r"\w+\s*(?:\[[^\[\]]*\]\s*)?[-+*/]?=(?!=)")
_OPENERS = frozenset({"OPEN_PAREN", "OPEN_BRACKET", "OPEN_BRACE"})
_CLOSERS = frozenset({"CLOSE_PAREN", "CLOSE_BRACKET", "CLOSE_BRACE"})


@final
@dataclass(frozen=True)
class Mistake:
    """A token that the parser refused, and the parser's state before it.

    - `kind`: the terminal found, "CHARACTER" if no token begins there
    - `accepts`: the terminals expected
    - `preceding`: the tokens before it, from the previous item on
    - `opening`: the innermost bracket that is still open
    - `item`: the keyword of the item that is not complete, or ""
    """

    kind: str
    span: Span
    accepts: frozenset[str]
    preceding: tuple[Lexeme, ...]
    opening: Lexeme | None
    item: str

    @property
    def source(self) -> Source:
        """The file with the error."""
        return self.span.source

    @property
    def before(self) -> Lexeme | None:
        """The token directly before it, or None."""
        return self.preceding[-1] if self.preceding else None

    @property
    def rest(self) -> tuple[str, int]:
        """The source's text and the offset after the token, arguments of `Pattern.match`."""
        return self.source.text, self.span.end

    @property
    def last(self) -> Lexeme:
        """The token directly before it; a pattern has shown that there is one."""
        assert self.before is not None
        return self.before

    def accepts_only(self, *kinds: str) -> bool:
        """Whether the grammar allows only these terminals here."""
        return self.accepts == frozenset(kinds)

    @property
    def starts_line(self) -> bool:
        """Whether it is the first token on its line."""
        if self.before is None:
            return True
        return "\n" in self.source.text[self.before.end : self.span.start]

    @property
    def is_nested_item(self) -> bool:
        """Whether an item begins inside a brace, indented."""
        if self.opening is None and "CLOSE_BRACE" in self.accepts:
            return _indent(self.source.text, self.span) > 0
        if self.opening is None or self.bracket != "{":
            return False
        around, own = (_indent(self.source.text, x) for x in (self.opening, self.span))
        return own > around

    @property
    def starts_statement(self) -> bool:
        """Whether a statement or an item might begin here."""
        return bool({"LET", "KERNEL"} & self.accepts)

    @property
    def follows_value(self) -> bool:
        """Whether an expression could go on here with an operator."""
        return "OR" in self.accepts

    @property
    def has_opening(self) -> bool:
        """Whether a bracket is open."""
        return self.opening is not None

    @property
    def bracket(self) -> str:
        """The innermost bracket that is open, or ""."""
        return self.opening.text if self.opening else ""

    @property
    def in_file(self) -> bool:
        """Whether an item may begin here."""
        return self.accepts >= ITEMS

    @property
    def in_target(self) -> bool:
        """Whether the open bracket is on a statement's left side: `y[i = 1`."""
        starts = {"", ";", "{", "}", "let"}
        return self.bracket == "[" and self.before_opening(2) in starts

    @property
    def ends_statement(self) -> bool:
        """Whether a statement ends before it, judged by its line or kind."""
        ends = self.kind in {"CLOSE_BRACE", "$END", "LET", "HOST"}
        begins = self.starts_line or self.begins_statement
        return self.before is not None and (ends or begins)

    def before_bracket(self, count: int) -> str:
        """Return the text of a token before the innermost bracket, if that is `[`."""
        return self.before_opening(count) if self.bracket == "[" else ""

    def before_opening(self, count: int) -> str:
        """Return the text of the token `count` before the innermost open bracket."""
        if self.opening is None:
            return ""
        at = self.preceding.index(self.opening) - count
        return self.preceding[at].text if at >= 0 else ""

    @property
    def begins_branch(self) -> bool:
        """Whether it follows a target inside an `if` branch: `if c { y[i] = 1 }`."""
        opening = self.opening
        if self.bracket != "{" or opening not in self.preceding:
            return False
        at = self.preceding.index(opening)
        between = [lexeme.text for lexeme in self.preceding[at + 1 :]]
        is_target = len(between) == 1 or (between[1:2] == ["["] and between[-1] == "]")
        is_branch = "if" in (lexeme.text for lexeme in self.preceding[:at])
        return is_branch and is_target and "=" not in between

    @property
    def follows_word(self) -> bool:
        """Whether the token before it is a name or a keyword."""
        return self.text_before(1).isidentifier()

    @property
    def begins_statement(self) -> bool:
        """Whether it begins a statement: a left side and a '='."""
        match = _STATEMENT.match(self.source.text, self.span.start)
        return self.kind == "NAME" and match is not None

    def text_before(self, count: int) -> str:
        """Return the text of the token `count` before it, or ""; 1 is the last one."""
        return self.preceding[-count].text if count <= len(self.preceding) else ""

    def statement(self) -> tuple[Lexeme, ...]:
        """The tokens before it since the last `;`, or since the file's start."""
        texts = [lexeme.text for lexeme in self.preceding]
        begin = len(texts) - texts[::-1].index(";") if ";" in texts else 0
        return self.preceding[begin:]

    def subscripted(self) -> tuple[Lexeme, tuple[Lexeme, ...]] | None:
        """The name and the brackets with subscripts that end directly before it."""
        depth = 0
        for place in range(len(self.preceding) - 1, 0, -1):
            depth += {"]": 1, "[": -1}.get(self.preceding[place].text, 0)
            if depth == 0:
                return self.preceding[place - 1], self.preceding[place:]
        return None

    def lexeme_span(self, lexeme: Lexeme) -> Span:
        """Return the span of a lexeme of the same file."""
        return Span(self.source, lexeme.start, lexeme.end)

    def text_from(self, lexeme: Lexeme) -> str:
        """Return the text from a lexeme to the end of its line."""
        return self.source.text[lexeme.start :].split("\n", 1)[0]


def _indent(text: str, piece: Lexeme | Span) -> int:
    """How far in the line of a piece begins."""
    line = text[text.rfind("\n", 0, piece.start) + 1 : piece.start + 1]
    return len(line) - len(line.lstrip())


def find_mistake(source: Source, error: UnexpectedError, begin: int) -> Mistake:
    """Return the syntax error with the parser's state when it refused a token."""
    stack, token = error.stack, error.token
    opening = _opening(stack)
    preceding = _preceding(stack, opening)
    match token:
        case None:
            end = max(begin, preceding[-1].end if preceding else 0)
            kind, span = END, Span(source, end, end)
        case int(at):
            kind, span = "CHARACTER", Span(source, at, at + 1)
        case Token():
            found = _lexeme(token)
            kind, span = token.type, Span(source, found.start, found.end)
    accepts = error.accepts
    # Behind a kernel's name, parameters are meant far more often than a gradient.
    accepts = frozenset({"OPEN_PAREN"}) if accepts == _NAMED_KERNEL else accepts
    return Mistake(kind, span, accepts, preceding, opening, _item(stack))


def _preceding(stack: Stack, opening: Lexeme | None) -> tuple[Lexeme, ...]:
    """Return the tokens of the last two items, and further back to the innermost open bracket.

    All tokens of the file would take too long, if each of its items has an error.
    """
    found: list[Lexeme] = []
    items = 0
    for token in reversed(stack.tokens):
        # Recovery may insert the tokens of a head; they have no text, and are left out.
        if token.end_pos == token.start_pos:
            continue
        found.append(_lexeme(token))
        items += token.type in ITEMS
        if items >= 2 and (opening is None or opening in found):
            break
    return tuple(reversed(found))


def _opening(stack: Stack) -> Lexeme | None:
    """Return the innermost bracket that is open: its rule is not complete."""
    closed = 0
    for token in reversed(stack.values):
        if isinstance(token, Token) and token.type in _CLOSERS:
            closed += 1
        elif isinstance(token, Token) and token.type in _OPENERS:
            if not closed:
                return _lexeme(token) if token.end_pos != token.start_pos else None
            closed -= 1
    return None


def _item(stack: Stack) -> str:
    tokens = (value for value in stack.values if isinstance(value, Token))
    return next((str(token) for token in tokens if token.type in ITEMS), "")


def _lexeme(token: Token) -> Lexeme:
    assert token.start_pos is not None, "the lexer gives each a place"
    return Lexeme(str(token), token.start_pos)
