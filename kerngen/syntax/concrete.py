"""The concrete syntax tree for the formatter: every token, with the comments beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, final

from lark import Lark, Token, Tree

from kerngen.source.text import Source
from kerngen.syntax.lalr import Tables
from kerngen.syntax.parser import grammar_text

_CLOSING = frozenset(
    {"CLOSE_PAREN", "CLOSE_BRACKET", "CLOSE_BRACE", "OPEN_BRACE", "WHEN"}
)
"""The tokens that may follow the last comma of a list.

`{` follows the outputs of a kernel, or the kernels of a schedule; `when` follows the kernels
of a schedule, or the indices of a reduction.
"""


@final
@dataclass(frozen=True, slots=True)
class Concrete:
    """A file without syntax errors: its tree, and all tokens and comments.

    `lexemes` are the tokens of the tree with the comments between them, in order.
    """

    tree: Tree[Token]
    lexemes: tuple[Token, ...]


def concrete(source: Source) -> Concrete:
    """Parse a file without syntax errors into its concrete tree."""
    lark: Any = _lexer()
    lexed: Iterable[Token] = lark.lex(source.text)
    lexemes = tuple(token for token in lexed if token.type != "BLANK")
    tokens = (lexeme for lexeme in lexemes if lexeme.type != "COMMENT")
    tree = _tables().parse(tokens, _node)
    return Concrete(cast("Tree[Token]", tree), lexemes)


def _node(rule: str, parts: list[Any], _start: int, _end: int) -> Tree[Token]:
    return Tree(rule, parts)


def is_last_comma(token: Token, after: Token) -> bool:
    """Whether a token is a trailing comma."""
    return token.type == "COMMA" and after.type in _CLOSING


@cache
def _tables() -> Tables:
    return Tables(_lark())


@cache
def _lexer() -> Lark:
    """Return a lexer that also yields blanks and comments, made once.

    lark's `lex(text, dont_ignore=True)` would make one for each text, which takes 5 ms.
    """
    lexical = re.sub(r"^%ignore .*$", "", grammar_text(), flags=re.MULTILINE)
    return Lark(lexical, parser=None, lexer="basic", start=["program"])


@cache
def _lark() -> Lark:
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        start=["program"],
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
