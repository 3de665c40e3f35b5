"""The pages about the language show all that the grammar has, in its canonical form."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from kerngen.format.form import formatted
from kerngen.source.text import Source
from kerngen.syntax.concrete import concrete
from kerngen.syntax.transform import LISTS, NODES, GrammarActions
from kerngen.syntax.wording import KEYWORDS
from tests.docs.blocks import Block, blocks_of, pages
from tests.project.tree import ROOT

PROGRAMS = [
    block
    for page in pages()
    for block in blocks_of(page)
    if block.language == "rust" and block.note is None
]

ABOUT_THE_LANGUAGE = [ROOT / "docs" / name for name in ("language.md", "files.md")]


def shown() -> tuple[set[str], set[str]]:
    """The rules and the terminals of all programs on the pages about the language."""
    rules: set[str] = set()
    terminals: set[str] = set()
    for block in PROGRAMS:
        if block.page in ABOUT_THE_LANGUAGE:
            parsed = concrete(Source(str(block), block.text))
            rules |= {str(each.data) for each in parsed.tree.iter_subtrees()}
            terminals |= {each.type for each in parsed.lexemes}
    return rules, terminals


def test_every_construct_is_shown() -> None:
    """Operators are not asked for: the page of words has them all."""
    rules, terminals = shown()
    methods: list[tuple[str, Any]] = inspect.getmembers(
        GrammarActions, inspect.isfunction
    )
    translated = {name for name, _ in methods if name.islower() and name[0] != "_"}
    translated |= LISTS | {*NODES}
    assert translated - rules == {"make"}
    assert KEYWORDS - terminals == {"FALSE"}


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_programs_have_the_canonical_form(block: Block) -> None:
    assert formatted(Source(str(block), block.text)) == block.text
