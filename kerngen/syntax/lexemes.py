"""A tolerant lexer, for texts with syntax errors, and for finding keywords.

It knows no grammar: it splits any text into words, strings, doc comments, operators and
single characters, with their places.  Blanks and plain comments are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

ITEM_WORDS = frozenset(
    {"use", "const", "struct", "fn", "derivative", "kernel", "schedule"}
)

_LEXEME = re.compile(
    r"""
    (?P<skip>\s+ | //(?![/!])[^\r\n]* | ////[^\r\n]*)
    | //[/!][^\r\n]*
    | "[^"\r\n]*"?
    | \w+
    | <<|>>|->|[<>=!+\-*/]=
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


@final
@dataclass(frozen=True, slots=True)
class Lexeme:
    """A piece of text, and its offset."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after the last character."""
        return self.start + len(self.text)

    @property
    def is_doc(self) -> bool:
        """Whether it is a doc comment of an item, parameter or field."""
        return self.text.startswith("///")


def lexemes(text: str, begin: int) -> Iterator[Lexeme]:
    """Yield the lexemes of `text` from `begin` on."""
    for match in _LEXEME.finditer(text, begin):
        if match["skip"] is None:
            yield Lexeme(match[0], match.start())
