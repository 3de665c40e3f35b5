"""The words of docstrings: a first line names the thing, in words that need no context."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from tests.project.tree import ROOT, python_files

if TYPE_CHECKING:
    from collections.abc import Iterator

_VAGUE: Final = r"(Say|Tell|Have|It|What|(Return|Yield) (what|it))\b"
"""Beginnings that leave open what a name is, or what a function returns."""

_WORDS: Final = r"\b(says?|tells?|stands?|told)\b"
"""What things do not do: a docstring has 'is', 'returns', 'reports' instead."""

_CANDIDATE: Final = re.compile(rf'"""{_VAGUE}|{_WORDS}')


def faults(text: str) -> Iterator[str]:
    """Yield what is wrong with the docstrings of a module's text."""
    if not _CANDIDATE.search(text):
        return  # to parse all takes 3 s
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            doc = ast.get_docstring(node) or ""
            name = "" if isinstance(node, ast.Module) else node.name
            found = re.search(_WORDS, doc)
            if not found and not name.startswith("_"):
                found = re.match(_VAGUE, doc)
            if found:
                yield f"{name}: '{found[0]}' in {doc.splitlines()[0]!r}"


def test_vague_words_are_found() -> None:
    text = '"""Order."""\ndef f():\n    """Return what it makes."""\n'
    assert [*faults(text)] == ["f: 'Return what' in 'Return what it makes.'"]
    assert [*faults('"""Order.\n\nIt tells more."""')] == [": 'tells' in 'Order.'"]
    assert [*faults('def _f():\n    """Return what it makes."""')] == []


def test_docstrings_name_things() -> None:
    wrong = {
        str(file.relative_to(ROOT)): found
        for file in python_files("kerngen")
        if (found := [*faults(file.read_text("utf-8"))])
    }
    assert wrong == {}
