"""The words of docstrings: a first line names the thing, in words that need no context."""

from __future__ import annotations

import re
from typing import Final

from tests.project.tree import ROOT, python_files

_DOC: Final = re.compile(r':\n +"""(.*?)"""', re.DOTALL)
"""A docstring of a class or function: it follows a colon."""

_VAGUE: Final = r"(Say|Tell|Have|It|What|(Return|Yield) (what|it))\b"
"""Beginnings that leave open what a name is, or what a function returns."""

_WORDS: Final = r"\b(says?|tells?|stands?|told)\b"
"""What things do not do: a docstring has 'is', 'returns', 'reports' instead."""


_BROKEN: Final = r"\s*[^\n]*[^\n.]\n *[^\s]"
"""A first sentence that goes on in a second line."""


def vague(text: str) -> list[str]:
    """The vague words in the docstrings of a module's text."""
    docs = [match[1] for match in _DOC.finditer(text)]
    if match := re.match(r'r?"""(.*?)"""', text, re.DOTALL):
        docs.append(match[1])
    found = (
        re.match(rf"\s*{_VAGUE}", doc)
        or re.search(_WORDS, doc)
        or re.match(_BROKEN, doc)
        for doc in docs
    )
    return [match[0].strip() for match in found if match]


def test_vague_words_are_found() -> None:
    text = '"""Order."""\n\ndef f() -> int:\n    """Return what it makes."""\n'
    assert vague(text) == ["Return what"]
    assert vague('"""Order.\n\nIt tells more."""') == ["tells"]
    assert vague('"""\nWhat is sorted.\n"""') == ["What"]
    assert vague('class A(\n    B\n):\n    """It is one."""') == ["It"]
    assert vague('"""Return the sum of what is there."""') == []
    assert vague('"""Return the sum,\n    or None."""') == ["Return the sum,\n    o"]
    assert vague('"""Return the sum.\n\n    Or None.\n    """') == []


def test_docstrings_name_things() -> None:
    texts = {file: file.read_text("utf-8") for file in python_files("kerngen")}
    wrong = {str(f.relative_to(ROOT)): vague(text) for f, text in texts.items()}
    assert {file: words for file, words in wrong.items() if words} == {}
    assert sum(len(_DOC.findall(text)) for text in texts.values()) > 5_000
