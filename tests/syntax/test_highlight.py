"""Pygments cuts programs into the tokens of the parser, and names them alike."""

from __future__ import annotations

import pkgutil
import tomllib
from pathlib import Path

import pytest
from pygments.token import Comment, Keyword, Number, String, Token

from kerngen.source.text import Source
from kerngen.syntax import wording
from kerngen.syntax.concrete import concrete
from kerngen.syntax.highlight import KernLexer
from tests.project.tree import ROOT

PROGRAMS = [*(ROOT / "dsl").glob("*.kern"), ROOT / "tests" / "syntax" / "example.kern"]

KINDS = {
    **dict.fromkeys(wording.KEYWORDS - wording.CONTEXTUAL - {"REDUCE"}, Keyword),
    "INT": Number,
    "FLOAT": Number.Float,
    "STRING": String,
    "DOC": String.Doc,
    "FILE_DOC": String.Doc,
    "COMMENT": Comment,
}
"""What the parser's terminals are to Pygments; the rest is names and punctuation."""


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_tokens_are_the_parsers(file: Path) -> None:
    text = file.read_text("utf-8")
    found = {
        at: (kind, part) for at, kind, part in KernLexer().get_tokens_unprocessed(text)
    }
    assert "".join(part for _, part in found.values()) == text
    for token in concrete(Source(file.name, text)).lexemes:
        kind, part = found[token.start_pos or 0]
        assert part == token, (kind, token)
        assert kind in KINDS.get(token.type, Token), (kind, token)


def test_contextual_words_are_keywords_in_their_place_alone() -> None:
    text = """
        kernel gradient = gradient of f by of, x given y, derivative;
        derivative of given(by: f32) { let of = by; gradient / of }
        kernel f(require: f32[n]) -> y: f32[n] { require n % 2 == 0; y[i] = require[i]; }
    """
    found = KernLexer().get_tokens(text)
    words = [part for kind, part in found if kind in Keyword and part.islower()]
    own = [word for word in words if word.upper() in wording.CONTEXTUAL]
    assert own == [*("gradient of by given derivative of require".split())]


def test_what_is_no_program_has_tokens_too() -> None:
    text = 'kernel ? "open\n$é\x00 }'
    assert "".join(part for _, part in KernLexer().get_tokens(text)) == text + "\n"


def test_it_is_what_the_package_offers() -> None:
    """As Pygments finds it; what is installed may be older than this file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (place,) = project["entry-points"]["pygments.lexers"].values()
    assert pkgutil.resolve_name(place) is KernLexer
