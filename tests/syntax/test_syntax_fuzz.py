"""Whatever the text, parsing gives a tree or diagnostics, and nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.render import render, to_json
from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.depth import LIMIT, LONGEST_CHAIN
from kerngen.syntax.parser import parse
from tests.budget import examples

from .parsing import EXAMPLE, codes_of, parse_expression, parse_text

TOKENS = """
    use const struct fn kernel schedule when mut let host if else true false or and not
    sum prod max min x i n f32 0 1.5 "a.kern" -> ; : , . @ ( ) [ ] { } = += == != < <= >
    >= | ^ & << >> + - * / % ~ // /// //! ! ? # $ && 0x1 1. .5 1e " ' return for é \ufeff
    \0 \u2028 \ud800
""".split(" ")

token_soup = st.lists(
    st.sampled_from([*TOKENS, "\n", "\r", "\t", "\r\n", " "]), max_size=40
).map(" ".join)

ranges = st.tuples(
    st.integers(0, len(EXAMPLE)), st.integers(0, 30), st.sampled_from(TOKENS)
)


def damaged(edits: Sequence[tuple[int, int, str]]) -> str:
    text = EXAMPLE
    for at, length, token in edits:
        text = f"{text[:at]} {token} {text[at + length :]}"
    return text


def check_printable(text: str) -> None:
    """A terminal takes it as it is: nothing moves the cursor or turns the text."""
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in unseen]


def check(text: str) -> None:
    source = Source("fuzz.kern", text)
    try:
        program = parse(source)
    except CompileError as error:
        check_diagnostics(error.diagnostics, text)
    else:
        assert isinstance(program, ast.Program)


def check_diagnostics(diagnostics: Sequence[Diagnostic], text: str) -> None:
    assert diagnostics
    check_printable(render(diagnostics))
    assert len(to_json(diagnostics)) == len(diagnostics)
    starts = [diagnostic.span.start for diagnostic in diagnostics]
    assert starts == sorted(starts)
    for diagnostic in diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)


@settings(max_examples=examples(200))
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text(text: str) -> None:
    check(text)


@settings(max_examples=examples(300))
@given(token_soup)
def test_any_tokens(text: str) -> None:
    check(text)


@settings(max_examples=examples(200))
@given(st.lists(ranges, min_size=1, max_size=4).map(damaged))
def test_a_damaged_program(text: str) -> None:
    check(text)


@settings(max_examples=examples(100))
@given(st.integers(0, len(EXAMPLE)))
def test_a_truncated_program(length: int) -> None:
    check(EXAMPLE[:length])


# Depth

MANY = 5000


def value(text: str) -> str:
    return f"kernel k() {{ host h = {text}; }}"


@pytest.mark.parametrize(
    "text",
    [
        "- " * MANY + "x",
        "not " * MANY + "x",
        "f(" * MANY + "x" + ")" * MANY,
        "x[" * MANY + "i" + "]" * MANY,
        "x" + "[i]" * MANY,
        "x" + ".y" * MANY,
        "x" + " / x" * MANY,
        "if x { y } else " * MANY + "{ z }",
        "if x { " * MANY + "y" + " } else { z }" * MANY,
    ],
)
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    assert codes_of(value(text)) == ["KG0107"]


def test_reductions_in_reductions_are_refused_by_their_indices() -> None:
    assert codes_of(value("sum[i] " * MANY + "x")) == ["KG0137"]


@pytest.mark.parametrize("operator", ["+", "*", "and", "|"])
def test_a_chain_that_is_too_long_is_refused(operator: str) -> None:
    assert codes_of(value("x" + f" {operator} x" * MANY)) == ["KG0134"]


def test_the_limits_are_exact() -> None:
    assert parse_text(value("-" * (LIMIT - 1) + "x")).items
    assert codes_of(value("-" * LIMIT + "x")) == ["KG0107"]
    assert parse_text(value("x" + " - x + x" * ((LONGEST_CHAIN - 1) // 2))).items
    assert codes_of(value("x" + " + x" * LONGEST_CHAIN)) == ["KG0134"]


def test_each_item_is_held_to_the_limit() -> None:
    deep = value("-" * LIMIT + "x")
    assert codes_of(f"{deep}\n{deep}\nconst A: f32 = 1.0;\n{deep}") == ["KG0107"] * 3


def test_parentheses_alone_nest_without_limit() -> None:
    assert parse_expression("(" * MANY + "x" + ")" * MANY) == parse_expression("x")


def test_open_brackets_without_end() -> None:
    for bracket in "([{":
        assert codes_of(value("f" + bracket * MANY)) == ["KG0101"]


def test_a_number_of_many_digits() -> None:
    assert codes_of(value("9" * MANY)) == ["KG0119"]
    assert codes_of(f"schedule k {{ gemm tile({'9' * MANY}) }}") == ["KG0119"]
    for text in ("0" * MANY, "0" + "1" * MANY, "1_" + "2" * MANY):
        assert codes_of(value(text)) == ["KG0115"]


def test_many_errors_are_all_reported() -> None:
    faults = codes_of("kernel k() {" + "a b;" * 500 + "}")
    assert faults == ["KG0101"] * 500
