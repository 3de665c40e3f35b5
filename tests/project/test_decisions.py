"""The records of decisions are numbered."""

from __future__ import annotations

from tests.project.tree import ROOT


def test_numbers_are_given_once() -> None:
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(file.name[:4]) for file in files] == [*range(1, len(files) + 1)]
    for file in files:
        number = int(file.name[:4])
        assert file.read_text("utf-8").startswith(f"# {number}. "), file.name
