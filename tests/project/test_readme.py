"""What pages name exists: links, files, strategies.  `tests/docs` runs their code."""

from __future__ import annotations

import re

import pytest

from kerngen.cli import main
from kerngen.schedule.strategies import STRATEGIES
from tests.project.tree import ROOT


def test_the_languages_page_knows_all_strategies() -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    strategies = {strategy.name for strategy in STRATEGIES.values()}
    assert strategies == set(re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_what_pages_refer_to_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_has_every_command() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `kerngen (\w+)", text, re.MULTILINE)) == set(
        main.commands
    )


def test_the_map_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    row = re.compile(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", re.MULTILINE)
    rows = row.findall(text)
    named = [
        ROOT / "kerngen" / folder / name
        for folder, names in rows
        for name in re.findall(r"`([^`]+)`", names)
    ]
    assert len(named) > 15
    assert [path for path in named if not path.exists()] == []
    paths = re.findall(r"`((?:\w+/)+[\w*]+\.\w+)`", row.sub("", text))
    for path in paths:
        assert list((ROOT / "kerngen").glob(path)) or list(ROOT.glob(path)), path
