"""Mistakes that habits from other languages, or haste, lead to: codes KG01xx.

They are syntax errors too, but common enough to be answered by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Diagnostic


@final
@dataclass(frozen=True, kw_only=True)
class ChainedComparison(Diagnostic):
    """`a < b < c`."""

    code: ClassVar[str] = "KG0108"
    rule: ClassVar[str] = "Comparisons are not chained."

    @property
    def headline(self) -> str:
        """States the rule."""
        return "Comparisons can't be chained."

    @property
    def label(self) -> str:
        """Marks the second one."""
        return "a second comparison"

    @property
    def hint(self) -> str:
        """Shows the two comparisons."""
        return "Join two comparisons with 'and', as in 'a < b and b < c'."


@final
@dataclass(frozen=True, kw_only=True)
class AssignmentInExpression(Diagnostic):
    """`=` where a value is wanted."""

    code: ClassVar[str] = "KG0109"
    rule: ClassVar[str] = "'=' assigns and is no operator; '==' compares."

    @property
    def headline(self) -> str:
        """Says what `=` is."""
        return "'=' assigns; it can't stand inside an expression."

    @property
    def hint(self) -> str:
        """Names the other."""
        return "To compare, write '=='."


@final
@dataclass(frozen=True, kw_only=True)
class ComparisonAsStatement(Diagnostic):
    """`==` where `=` is wanted."""

    code: ClassVar[str] = "KG0110"
    rule: ClassVar[str] = "A statement assigns with '='; '==' compares."

    @property
    def headline(self) -> str:
        """Says what `==` is."""
        return "'==' compares; a statement assigns with '='."

    @property
    def hint(self) -> str:
        """Names the other."""
        return "Write '='."


@final
@dataclass(frozen=True, kw_only=True)
class MissingSemicolon(Diagnostic):
    """A statement that runs into what follows."""

    code: ClassVar[str] = "KG0111"
    rule: ClassVar[str] = "Statements, constants and 'use' end with ';'."

    @property
    def headline(self) -> str:
        """Says what is missing."""
        return "A ';' is missing."

    @property
    def label(self) -> str:
        """Marks the place."""
        return "expected ';' here"


@final
@dataclass(frozen=True, kw_only=True)
class SemicolonAfterValue(Diagnostic):
    """`{ x; }` where the braces hold a value."""

    code: ClassVar[str] = "KG0112"
    rule: ClassVar[str] = "The value of a function or branch is not followed by ';'."

    @property
    def headline(self) -> str:
        """States the rule."""
        return "The value of a function or branch is not followed by ';'."

    @property
    def hint(self) -> str:
        """Says what to do."""
        return "Remove the ';'."


@final
@dataclass(frozen=True, kw_only=True)
class ReservedWord(Diagnostic):
    """A word of the language where a name is wanted."""

    code: ClassVar[str] = "KG0113"
    rule: ClassVar[str] = "Keywords and 'sum', 'prod', 'max', 'min' can't name values."

    word: str

    @property
    def headline(self) -> str:
        """Names the word."""
        return f"'{self.word}' is a word of the language and can't be a name here."

    @property
    def hint(self) -> str:
        """Offers a name."""
        return f"Choose another name, such as '{self.word}_'."


@final
@dataclass(frozen=True, kw_only=True)
class ForeignSpelling(Diagnostic):
    """Something that other languages write this way."""

    code: ClassVar[str] = "KG0114"
    rule: ClassVar[str] = "Each operator and keyword has one spelling."

    found: str
    instead: str

    @property
    def headline(self) -> str:
        """Names what was written."""
        return f"The language has no '{self.found}'."

    @property
    def hint(self) -> str:
        """Names what it has."""
        return f"Write {self.instead}."


@final
@dataclass(frozen=True, kw_only=True)
class IndexNotBare(Diagnostic):
    """Something else than a name where a `let` or reduction introduces an index."""

    code: ClassVar[str] = "KG0116"
    rule: ClassVar[str] = "A 'let' or a reduction introduces each index by a bare name."

    @property
    def headline(self) -> str:
        """States the rule."""
        return "A 'let' or a reduction introduces each index by a bare name."

    @property
    def hint(self) -> str:
        """Shows a range."""
        return "Write a name, with a range if need be: 'sum[i]', 'sum[i < n]'."


@final
@dataclass(frozen=True, kw_only=True)
class WrittenType(Diagnostic):
    """`let x: f32 = ...`."""

    code: ClassVar[str] = "KG0117"
    rule: ClassVar[str] = "A 'let' or 'host' has the type of its value."

    @property
    def headline(self) -> str:
        """States the rule."""
        return "A 'let' or 'host' has the type of its value, and no written one."

    @property
    def hint(self) -> str:
        """Says what to do."""
        return "Remove the ':' and the type."


@final
@dataclass(frozen=True, kw_only=True)
class EmptyBrackets(Diagnostic):
    """`s[]` in a statement."""

    code: ClassVar[str] = "KG0118"
    rule: ClassVar[str] = "Brackets hold an index; rank 0 is written by its bare name."

    @property
    def headline(self) -> str:
        """Says what is missing."""
        return "These brackets need an index."

    @property
    def hint(self) -> str:
        """Shows how rank 0 is written."""
        return (
            "A value of rank 0 is read and written by its bare name, as in 's = 0.0;'."
        )


@final
@dataclass(frozen=True, kw_only=True)
class MisplacedMut(Diagnostic):
    """`let mut`, or a `mut` output."""

    code: ClassVar[str] = "KG0120"
    rule: ClassVar[str] = "Only a tensor parameter of a kernel is marked 'mut'."

    @property
    def headline(self) -> str:
        """States the rule."""
        return "Only a tensor parameter of a kernel is marked 'mut'."

    @property
    def hint(self) -> str:
        """Says what the others are."""
        return "Remove it: an output can be written anyway, a 'let' never."
