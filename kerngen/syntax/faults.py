"""What can be wrong with a file before anything in it is looked up: codes KG01xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Diagnostic


@final
@dataclass(frozen=True, kw_only=True)
class UnexpectedToken(Diagnostic):
    """Something else should stand here."""

    code: ClassVar[str] = "KG0101"
    rule: ClassVar[str] = "A file follows the grammar of the kernel language."

    found: str
    expected: tuple[str, ...]

    @property
    def headline(self) -> str:
        """What was expected, and what is there."""
        return f"Expected {_alternatives(self.expected)}, found {self.found}."


@final
@dataclass(frozen=True, kw_only=True)
class UnexpectedCharacter(Diagnostic):
    """A character that no token begins with."""

    code: ClassVar[str] = "KG0102"
    rule: ClassVar[str] = "A file holds only the tokens of the kernel language."

    character: str

    @property
    def headline(self) -> str:
        """Names the character."""
        return f"The character '{self.character}' has no meaning here."


@final
@dataclass(frozen=True, kw_only=True)
class TrailingDoc(Diagnostic):
    """A doc comment after something on its line: it would document the next thing."""

    code: ClassVar[str] = "KG0105"
    rule: ClassVar[str] = (
        "A doc comment stands on its own line, before what it documents."
    )

    @property
    def headline(self) -> str:
        """Says where doc comments stand."""
        return "A doc comment stands on its own line, before what it documents."


@final
@dataclass(frozen=True, kw_only=True)
class NestedTooDeep(Diagnostic):
    """An expression deeper than the later stages can walk."""

    code: ClassVar[str] = "KG0106"
    rule: ClassVar[str] = "An expression is nested no deeper than the limit."

    limit: int

    @property
    def headline(self) -> str:
        """States the limit."""
        return f"This is nested more than {self.limit} levels deep."

    @property
    def hint(self) -> str:
        """Suggests to name a part."""
        return "Name a part of it with 'let'."


def _alternatives(words: tuple[str, ...]) -> str:
    """`a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
