"""The parser in the user's cache is the one that lark makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from lark import Lark, lark

from kerngen.syntax import parser
from kerngen.syntax.lalr import Tables
from kerngen.syntax.parser import build_parser, grammar_text
from tests.project.tree import ROOT

SHORT: Final = """
program: item*
item: "kernel" NAME
NAME: /[a-z]+/
%ignore " "
"""
"""What takes lark a hundredth of the time that the language takes it."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the grammars that lark goes through, one for each parser that it makes."""
    found: list[str] = []
    load = vars(lark)["load_grammar"]

    def counted(grammar: str, *rest: object) -> object:
        found.append(grammar)
        return load(grammar, *rest)

    monkeypatch.setattr(lark, "load_grammar", counted)
    return found


def rules(tables: Lark, text: str) -> list[object]:
    """Return the rules that a parser finds in a text, with their parts and places."""
    found: list[object] = []

    def make(rule: str, parts: list[Any], start: int, end: int) -> object:
        found.append((rule, [*map(str, parts)], start, end))
        return rule

    read = Tables(tables)
    read.parse(read.tokens(text), make)
    return found


def test_it_is_made_once_and_reads_the_same(tmp_path: Path, made: list[str]) -> None:
    cache = tmp_path / "parser"
    first, again = (build_parser(grammar_text(), cache=cache) for _ in range(2))
    assert len(made) == 1
    for file in sorted(ROOT.glob("dsl/*.kern"))[::5]:
        text = file.read_text("utf-8")
        assert rules(first, text) == rules(again, text) != []


@pytest.mark.parametrize("size", [0, 10, 64, 100, 600])
def test_a_damaged_one_is_made_anew(tmp_path: Path, made: list[str], size: int) -> None:
    cache = tmp_path / "parser"
    build_parser(SHORT, cache=cache)
    content = cache.read_bytes()
    assert len(content) > size
    cache.write_bytes(content[:size])
    for _ in range(2):
        assert rules(build_parser(SHORT, cache=cache), "kernel f")
    assert len(made) == 2


def test_another_grammar_has_a_parser_of_its_own(
    tmp_path: Path, made: list[str]
) -> None:
    cache = tmp_path / "parser"
    build_parser(SHORT, cache=cache)
    other = SHORT.replace('"kernel"', '"shader"')
    assert rules(build_parser(other, cache=cache), "shader f shader g")
    assert rules(build_parser(other, cache=cache), "shader f shader g")
    assert made == [SHORT, other]


PROGRAM: Final = """
import logging, sys
from lark import lark
made = []
load = lark.load_grammar
lark.load_grammar = lambda *given: made.append(0) or load(*given)
from kerngen.source.text import Source
from kerngen.syntax.parser import parse
parse(Source("a.kern", "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }"))
print(len(made))
"""


def parsers_made(home: Path) -> int:
    """Return how many parsers a new process makes to read a file."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={"HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return int(done.stdout)


def test_processes_share_it(tmp_path: Path) -> None:
    assert [parsers_made(tmp_path) for _ in range(3)] == [1, 0, 0]


def test_a_home_that_takes_no_file_is_no_fault(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file, so that nothing can be below it", "utf-8")
    assert parsers_made(home) == parsers_made(home) == 1


def test_a_cache_that_can_not_be_written_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[str]
) -> None:
    folder = tmp_path / "parser"
    folder.mkdir()
    for _ in range(2):
        assert rules(build_parser(SHORT, cache=folder), "kernel f")
    assert len(made) == 2
    monkeypatch.setattr(parser, "_cache_file", lambda: None)
    vars(parser)["_tables"].__wrapped__()
    assert len(made) == 3
