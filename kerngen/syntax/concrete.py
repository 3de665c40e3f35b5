"""Text to the concrete syntax tree, which keeps what the abstract one leaves out.

It holds every token, and the comments stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol, final

from lark import Lark, Token, Tree
from lark.utils import TextSlice

from kerngen.source.text import Source
from kerngen.syntax.parser import grammar_text

_CLOSING = frozenset({"CLOSE_PAREN", "CLOSE_BRACKET", "CLOSE_BRACE", "OPEN_BRACE"})
"""What may follow a list's last comma; `{` follows the outputs of a kernel."""


@final
@dataclass(frozen=True, slots=True)
class Concrete:
    """A file without errors of syntax: its tree, and all of its text but blanks.

    `lexemes` are the tokens of the tree with the comments between them, in order.
    """

    tree: Tree[Token]
    lexemes: tuple[Token, ...]


def concrete(source: Source) -> Concrete:
    """Parse a file that `parser.parse` takes."""
    parser = _parser()
    text = TextSlice(source.text, 0, len(source.text))
    lexed = parser.lex(text, dont_ignore=True)
    lexemes = tuple(token for token in lexed if token.type != "BLANK")
    return Concrete(parser.parse(text, start="program"), lexemes)


def is_last_comma(token: Token, after: Token) -> bool:
    """Whether a token is a comma that no element of its list follows."""
    return token.type == "COMMA" and after.type in _CLOSING


class _Parser(Protocol):
    """The part of lark's interface that is used here, fully typed."""

    def lex(
        self, text: TextSlice[str], dont_ignore: bool = False
    ) -> Iterator[Token]: ...

    def parse(self, text: TextSlice[str], start: str) -> Tree[Token]: ...


@cache
def _parser() -> _Parser:
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        start=["program"],
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
