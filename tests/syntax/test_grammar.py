"""The grammar is LALR(1) without a conflict, and everything in it is translated."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterator

import pytest
from lark import Lark, logger
from lark.lexer import PatternStr

from kerngen.syntax import wording
from kerngen.syntax.parser import build_parser, grammar_text
from kerngen.syntax.transform import LISTS, NODES, GrammarActions


class Messages(logging.Handler):
    """Keeps what lark says while it builds a parser."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def messages() -> Iterator[Messages]:
    handler, level = Messages(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(level)
    logger.removeHandler(handler)


def conflicts(messages: Messages) -> list[str]:
    return [line for line in messages.lines if "conflict" in line.lower()]


def test_the_grammar_has_no_conflict(messages: Messages) -> None:
    build_parser(grammar_text(), debug=True)
    assert conflicts(messages) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A `*` after a reduction that could be its own or its surroundings'.
        ("closed_product STAR unary", "product STAR unary"),
        # An operator that associates to both sides.
        ("additive (PLUS | MINUS) product", "additive (PLUS | MINUS) additive"),
    ],
)
def test_a_conflict_would_be_seen(messages: Messages, old: str, new: str) -> None:
    assert old in grammar_text()
    build_parser(grammar_text().replace(old, new), debug=True)
    assert conflicts(messages)


def built() -> Lark:
    return build_parser(grammar_text())


def test_every_rule_is_translated_once() -> None:
    names = {rule.alias or rule.origin.name for rule in built().rules}
    trees = {name for name in names if not name.startswith(("_", "$"))}
    inlined = set(re.findall(r"^\?(\w+):", grammar_text(), re.MULTILINE))
    methods = {
        name for name, _ in inspect.getmembers(GrammarActions, inspect.isfunction)
    }
    assert not methods & LISTS
    assert not methods & {*NODES}
    assert LISTS.isdisjoint(NODES)
    methods |= LISTS | {*NODES}
    aliased_only = {"item", "output", "field", "parameter", "arguments_of_function"}
    aliased_only |= {"outputs", "axes", "arguments"}
    assert trees - inlined - aliased_only <= methods
    assert {m for m in methods if not m.startswith("_")} - {"make"} <= trees


def test_every_terminal_is_described_in_words() -> None:
    for terminal in built().terminals:
        if terminal.name in {"COMMENT", "BLANK", "DOC", "FILE_DOC"}:
            continue
        (words,) = wording.describe({terminal.name})
        if isinstance(terminal.pattern, PatternStr):
            phrases = {"'|'": "an operator", "'or'": "an operator"}
            literal = f"'{terminal.pattern.value}'"
            assert words == phrases.get(literal, literal)
        else:
            assert words in {
                "a name",
                "a reduction",
                "a number",
                "a whole number",
                "a path in double quotes",
                "'+='",
            }
