"""An error of the parser, and what stands around it in the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from kerngen.source.text import Source, Span
from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes

_NAMED_KERNEL = frozenset({"OPEN_PAREN", "ASSIGN"})
_PAIRS = {")": "(", "]": "[", "}": "{"}


@final
@dataclass(frozen=True)
class Mistake:
    """An error of the parser and what stands around it.

    `kind` is the terminal found, `accepts` those expected, `preceding` what stands
    before it and `opening` the innermost bracket that is still open.
    """

    kind: str
    span: Span
    accepts: frozenset[str]
    preceding: tuple[Lexeme, ...]
    opening: Lexeme | None

    @property
    def source(self) -> Source:
        """The file."""
        return self.span.source

    @property
    def before(self) -> Lexeme | None:
        """What stands directly before it."""
        return self.preceding[-1] if self.preceding else None

    def accepts_only(self, *kinds: str) -> bool:
        """Whether just these terminals could stand here."""
        return self.accepts == frozenset(kinds)

    @property
    def starts_line(self) -> bool:
        """Whether nothing stands before it on its line."""
        if self.before is None:
            return True
        return "\n" in self.source.text[self.before.end : self.span.start]

    @property
    def is_nested_item(self) -> bool:
        """Whether an item begins inside a brace, and further in than its line."""
        if self.opening is None and "CLOSE_BRACE" in self.accepts:
            return _indent(self.source.text, self.span) > 0
        if self.opening is None or self.opening.text != "{":
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
    def item(self) -> str:
        """The keyword of the last item before it, where its parse began with one."""
        keywords = (x.text for x in reversed(self.preceding) if x.text in ITEM_WORDS)
        return next(keywords, "")

    def text_before(self, count: int) -> str:
        """The text of the piece that stands so many pieces before it, or nothing."""
        return self.preceding[-count].text if count <= len(self.preceding) else ""

    def statement(self) -> tuple[Lexeme, ...]:
        """What stands before it since the last `;`, or since the file began."""
        texts = [lexeme.text for lexeme in self.preceding]
        begin = len(texts) - texts[::-1].index(";") if ";" in texts else 0
        return self.preceding[begin:]

    def subscripted(self) -> tuple[Lexeme, tuple[Lexeme, ...]] | None:
        """What the brackets that end directly before it follow, and these."""
        depth = 0
        for place in range(len(self.preceding) - 1, 0, -1):
            depth += {"]": 1, "[": -1}.get(self.preceding[place].text, 0)
            if depth == 0:
                return self.preceding[place - 1], self.preceding[place:]
        return None

    def lexeme_span(self, lexeme: Lexeme) -> Span:
        """The span of a piece of the same file."""
        return Span(self.source, lexeme.start, lexeme.end)

    def text_from(self, lexeme: Lexeme) -> str:
        """The text from a piece to the end of the line that it is on."""
        return self.source.text[lexeme.start :].split("\n", 1)[0]


def _indent(text: str, piece: Lexeme | Span) -> int:
    """How far in the line of a piece begins."""
    line = text[text.rfind("\n", 0, piece.start) + 1 : piece.start + 1]
    return len(line) - len(line.lstrip())


def look_around(kind: str, span: Span, accepts: Iterable[str], begin: int) -> Mistake:
    """Look around a faulty token; `begin` is where its parse began."""
    preceding: list[Lexeme] = []
    opened: list[Lexeme] = []
    for lexeme in lexemes(span.source.text, begin):
        if lexeme.start >= span.start and kind != "$END":
            break
        preceding.append(lexeme)
        if lexeme.text in _PAIRS.values():
            opened.append(lexeme)
        elif opened and _PAIRS.get(lexeme.text) == opened[-1].text:
            opened.pop()
    if kind == "$END":
        end = preceding[-1].end if preceding else begin
        span = Span(span.source, end, end)
    opening = opened[-1] if opened else None
    accepted = frozenset(accepts)
    # Behind a kernel's name, parameters are meant far more often than a gradient.
    accepted = frozenset({"OPEN_PAREN"}) if accepted == _NAMED_KERNEL else accepted
    return Mistake(kind, span, accepted, tuple(preceding), opening)
