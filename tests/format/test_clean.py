"""The library, and every program in the documentation, has the canonical form.

So have those on the pages of errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kerngen.format.form import formatted
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from tests.project.tree import ROOT

FILES = [
    *sorted((ROOT / "dsl").glob("*.kern")),
    *sorted((ROOT / "examples").rglob("*.kern")),
    *sorted((ROOT / "kerngen").rglob("*.kern")),
]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "kerngen" / "explain" / "pages").glob("*.md")),
]


def blocks(page: Path) -> Iterator[str]:
    """Every program of a page; they are called Rust, whose colours fit."""
    yield from re.findall(
        r"```rust[^\n]*\n(.*?)```", page.read_text("utf-8"), re.DOTALL
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file(file: Path) -> None:
    text = file.read_text("utf-8")
    assert formatted(Source(file.name, text)) == text, "run 'kerngen fmt'"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path) -> None:
    for text in blocks(page):
        with suppress(CompileError):  # one that shows a mistake, or a part of a program
            assert formatted(Source(page.name, text)) == text, "format it, as a file"


def test_the_example_is_what_it_becomes() -> None:
    page = (ROOT / "docs" / "fmt.md").read_text("utf-8")
    before = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert before is not None
    after = formatted(Source("fmt.md", before[1]))
    assert f"```rust\n{after}```" in page
