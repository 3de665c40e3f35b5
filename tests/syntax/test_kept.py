"""A parser that was kept is the one that lark makes, and is made anew where it is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest
from lark import Lark

from kerngen.syntax.kept import kept
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


class Maker:
    """Makes parsers, and counts them."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, grammar: str) -> Lark:
        self.made += 1
        return build_parser(grammar)


@pytest.fixture(autouse=True)
def _as_python_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    file = tmp_path / "grammar.lark"
    file.write_text(SHORT, "utf-8")
    return file


def packed(grammar: Path) -> list[Path]:
    """Return what is in the folder of bytecode."""
    return [*(grammar.parent / "__pycache__").glob("*")]


def parsed(lark: Lark, text: str) -> list[object]:
    """Return what rules a parser finds in a text, with their parts and places."""
    found: list[object] = []

    def make(rule: str, parts: list[Any], start: int, end: int) -> object:
        found.append((rule, [*map(str, parts)], start, end))
        return rule

    tables = Tables(lark)
    tables.parse(tables.tokens(text), make)
    return found


def test_it_is_made_once_and_reads_what_lark_reads(grammar: Path) -> None:
    grammar.write_text(grammar_text(), "utf-8")
    maker = Maker()
    first, again = kept(grammar, maker), kept(grammar, maker)
    assert maker.made == 1
    assert again is not first
    for file in sorted(ROOT.glob("dsl/*.kern"))[::5]:
        text = file.read_text("utf-8")
        assert parsed(first, text) == parsed(again, text) != []


@pytest.mark.parametrize("size", [0, 10, 64, 100, 600])
def test_what_is_damaged_is_made_anew(grammar: Path, size: int) -> None:
    maker = Maker()
    kept(grammar, maker)
    (file,) = packed(grammar)
    whole = file.read_bytes()
    assert len(whole) > size
    for content in (whole[:size], whole[:size] + b"\0" + whole[size + 1 :]):
        file.write_bytes(content)
        before = maker.made
        kept(grammar, maker)
        assert maker.made == before + 1
        assert len(file.read_bytes()) > size


def test_another_grammar_or_lark_has_a_parser_of_its_own(
    grammar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = Maker()
    kept(grammar, maker)
    grammar.write_text(SHORT.replace('"kernel"', '"shader"'), "utf-8")
    assert parsed(kept(grammar, maker), "shader f shader g")
    assert parsed(kept(grammar, maker), "shader f shader g")
    assert maker.made == 2
    monkeypatch.setattr("lark.__version__", "0.0")
    kept(grammar, maker)
    assert maker.made == 3


def test_it_is_written_where_and_if_bytecode_is(
    grammar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept(grammar, Maker())
    assert not packed(grammar)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
    kept(grammar, Maker())
    assert not packed(grammar)
    (file,) = (tmp_path / "elsewhere").rglob("*.tables")
    assert file.stat().st_mode & 0o777 == grammar.stat().st_mode & 0o666


def test_a_folder_that_takes_no_file_is_no_fault(grammar: Path) -> None:
    (grammar.parent / "__pycache__").write_text("a file", "utf-8")
    maker = Maker()
    kept(grammar, maker)
    kept(grammar, maker)
    assert maker.made == 2
