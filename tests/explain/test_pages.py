"""A page for every code: its wrong example has that fault alone, its right one none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.catalogue import DIAGNOSTICS
from kerngen.explain.pages import FOLDER, Page, codes, grouped, page, title
from kerngen.source.render import render
from tests.wording import check_wording

from .examples import blocks, faults_of, sections, with_message

CODES = [kind.CODE for kind in DIAGNOSTICS]


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert codes() == CODES
    pages = [f"{code}.md" for code in CODES]
    assert sorted(file.name for file in FOLDER.iterdir()) == pages


def test_every_page_belongs_to_one_group() -> None:
    listed = [each.code for pages in grouped().values() for each in pages]
    assert listed == codes()


@pytest.mark.parametrize("code", codes())
def test_a_page_says_what_the_compiler_says(
    code: str, golden: Callable[[Path, str], None], tmp_path: Path
) -> None:
    old = page(code)
    wrong = faults_of(sections(old).wrong, tmp_path)
    assert [fault.code for fault in wrong] == [code]
    check_wording(wrong[0])
    golden(FOLDER / f"{code}.md", with_message(old, render(wrong)))


@pytest.mark.parametrize("code", codes())
def test_the_right_example_compiles(code: str, tmp_path: Path) -> None:
    assert render(faults_of(sections(page(code)).right, tmp_path)) == ""


@pytest.mark.parametrize("code", codes())
def test_a_page_is_made_like_the_others(code: str) -> None:
    here = page(code)
    prose = sections(here).prose
    assert here.text.startswith(title(code, here.rule) + "\n")
    assert here.rule.endswith(".")
    assert "```" not in prose
    assert 2 <= prose.count(". ") + prose.count(".\n") <= 9
    assert here.text.endswith("```\n")
    assert all(line.isprintable() for line in here.text.splitlines())
    wrong, right = (
        [block.text for block in blocks(part)]
        for part in (sections(here).wrong, sections(here).right)
    )
    assert wrong != right


def test_a_title_has_its_code_in_code() -> None:
    rule = "Can't 'a b' be the user's 'c'?"
    assert title("KG1", rule) == "# KG1: Can't `a b` be the user's `c`?"
    assert Page("KG1", title("KG1", rule)).rule == rule
