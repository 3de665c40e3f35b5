"""Our loop over lark's tables finds what lark's own loop does."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken

from kerngen.syntax.lalr import END, Tables, UnexpectedError
from kerngen.syntax.parser import grammar_text
from kerngen.syntax.wording import CONTEXTUAL
from tests.budget import examples
from tests.project.tree import ROOT

FILES: Final = sorted(ROOT.glob("dsl/*.kern"))
LARK: Final[Any] = Lark(
    grammar_text(),
    parser="lalr",
    lexer="basic",
    start=["program"],
    propagate_positions=True,
    maybe_placeholders=True,
)
TABLES: Final = Tables(LARK)
CUTS: Final = examples(15)


def nothing(_rule: str, _parts: list[Any], _start: int, _end: int) -> None:
    """Make nothing of any rule: only whether a text can be read is asked."""


def read(file: Path) -> str:
    """Return a file without words that are names elsewhere.

    Where they are which is for our loop to say: lark takes them for words everywhere.
    """
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"\bkernel \w+ = gradient of [^;]*;", "const Z: f32 = 0.0;", text)
    return re.sub(r"\bgradient\b", "incline", text)


def places(tree: Tree[Token]) -> list[tuple[object, ...]]:
    """Return where lark finds each rule that has a text at all."""
    return [
        (node.data, node.meta.start_pos, node.meta.end_pos)
        for node in tree.iter_subtrees()
        if not node.meta.empty
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_tree_and_the_place_of_each_rule_are_the_same(file: Path) -> None:
    found: list[tuple[object, ...]] = []

    def make(rule: str, parts: list[Any], start: int, end: int) -> object:
        found.append((rule, start, end))
        return Tree(rule, parts)

    text = read(file)
    expected = LARK.parse(text)
    assert TABLES.parse(TABLES.tokens(text), make) == expected
    assert set(places(expected)) <= set(found)


def mistake(text: str) -> tuple[int | None, frozenset[str]] | None:
    """Return where lark finds one, None at the end, and what it would take there."""
    try:
        LARK.parse(text)
    except UnexpectedToken as error:
        token: Any = error.token
        return None if token.type == END else token.start_pos, frozenset(error.accepts)
    return None


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_mistake_is_found_at_the_same_token_which_others_could_replace(
    file: Path,
) -> None:
    random = Random(file.stem)
    text = read(file)
    tokens = list(TABLES.tokens(text))
    for _ in range(CUTS):
        gone = random.choice(tokens)
        wrong = text[: gone.start_pos] + text[gone.end_pos :][: random.randrange(200)]
        expected = mistake(wrong)
        if expected is None:
            continue
        with pytest.raises(UnexpectedError) as caught:
            TABLES.parse(TABLES.tokens(wrong), nothing)
        token = caught.value.token
        place = token.start_pos if isinstance(token, Token) else token
        assert (place, caught.value.accepts) == expected


WORDS: Final = """
kernel gradient = gradient of by by given, of given derivative;
derivative of given(by: f32) { let of = by; gradient / of }
kernel f(require: f32[n], gradient: f32) -> of: f32[n] {
    require n % 2 == 0;
    let given[by] = require[by];
    of[i] = given[i] * gradient;
}
"""


def test_contextual_words_are_names_where_lark_s_contextual_lexer_has_them() -> None:
    """At the start of a statement, it has both: there, `require` is no name."""
    own: Any = Lark(
        grammar_text(), start=["program"], maybe_placeholders=True, parser="lalr"
    )
    expected = own.parse(WORDS)
    kinds: set[str] = set()

    def make(rule: str, parts: list[Any], _start: int, _end: int) -> object:
        kinds.update(part.type for part in parts if isinstance(part, Token))
        return Tree(rule, parts)

    made: object = TABLES.parse(TABLES.tokens(WORDS), make)
    assert made == expected
    assert "NAME" in kinds
    assert CONTEXTUAL.isdisjoint(kinds)
