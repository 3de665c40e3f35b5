"""The forgiving scan sees the same brackets and words as the parser's own lexer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

from lark import Token

from kerngen.syntax.lexemes import Lexeme, lexemes
from kerngen.syntax.parser import build_parser, grammar_text

from .parsing import EXAMPLE


class Lexer(Protocol):
    """What is used of lark here."""

    def lex(self, text: str) -> Iterator[Token]: ...


TRICKY = 'use "a//b {";\n// kernel {\n/// doc {\n//// plain {\nfn f() -> f32 { 1.5e-3 }'


def lex(text: str) -> Iterator[Token]:
    # Lark's own annotation leaves a type variable open.
    return cast("Lexer", build_parser(grammar_text())).lex(text)


def test_brackets_and_words_agree_with_the_lexer() -> None:
    for text in (EXAMPLE, TRICKY):
        tokens = lex(text)
        shared = {
            (str(token), token.start_pos)
            for token in tokens
            if str(token) in set("()[]{};") or token.type in {"NAME", "FN", "KERNEL"}
        }
        found = list(lexemes(text, 0))
        assert shared <= {(lexeme.text, lexeme.start) for lexeme in found}
        brackets = [lexeme for lexeme in found if lexeme.text in set("()[]{};")]
        assert {(lexeme.text, lexeme.start) for lexeme in brackets} <= shared


def test_docs_are_seen_and_comments_are_not() -> None:
    text = "/// a\n// b\n//! c\n//// d\nx"
    assert list(lexemes(text, 0)) == [
        Lexeme("/// a", 0),
        Lexeme("//! c", 11),
        Lexeme("x", 24),
    ]
    assert [lexeme.is_doc for lexeme in lexemes(text, 0)] == [True, False, False]
