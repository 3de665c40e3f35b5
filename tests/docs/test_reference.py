"""The pages of docs/reference are what their tables and docstrings say now."""

from __future__ import annotations

from pathlib import Path

import pytest

import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from tests.docs.reference import FOLDER, PAGES
from tests.docs.reference.words import PRECEDENCE
from tests.syntax.levels import LEVELS

BINARY = [" ".join(level) for level in LEVELS]
"""The operators between two values, from loosest to tightest, as they are parsed."""


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_page_is_up_to_date(file: Path) -> None:
    now = PAGES[file]() == file.read_text("utf-8")
    assert (
        now
    ), f"{file.name} is out of date: run tools/docs, and commit what it writes."


def test_nothing_else_lies_there() -> None:
    assert set(FOLDER.iterdir()) == set(PAGES)


def test_pages_name_everything() -> None:
    def text(name: str) -> str:
        return (FOLDER / name).read_text("utf-8")

    assert [
        n for n in {**BUILTINS, **GEOMETRY} if f"| `{n}(" not in text("builtins.md")
    ] == []
    assert [
        n for n in main.commands if f"## kerngen {n}\n" not in text("commands.md")
    ] == []
    assert [n for n in gpu.__all__ if n not in text("runtime.md")] == []


def test_operators_bind_as_the_page_says() -> None:
    assert [words.split() for words, *_ in PRECEDENCE if words in BINARY] == LEVELS
    assert {*BINARY} | {"not", "- ~", "x[i] x.y f(x)"} == {row[0] for row in PRECEDENCE}
