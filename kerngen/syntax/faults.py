"""Syntax errors: codes KG01xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Diagnostic, Related
from kerngen.source.similar import did_you_mean
from kerngen.source.text import Span
from kerngen.syntax.lookalikes import described, meant_by


@final
@dataclass(frozen=True, kw_only=True)
class UnexpectedToken(Diagnostic):
    """Something else should stand here."""

    code: ClassVar[str] = "KG0101"
    rule: ClassVar[str] = "A file follows the grammar of the kernel language."

    found: str
    expected: tuple[str, ...]
    opening: Span | None = None
    remedy: str = ""

    @property
    def headline(self) -> str:
        """What was expected, and what is there."""
        return f"Expected {_alternatives(self.expected)}, found {self.found}."

    @property
    def hint(self) -> str:
        """What to do, where that is known."""
        return self.remedy

    @property
    def related(self) -> tuple[Related, ...]:
        """The bracket that is still open, where that may be the reason."""
        if self.opening is None:
            return ()
        return (Related(self.opening, f"this '{self.opening.text}' is still open"),)


@final
@dataclass(frozen=True, kw_only=True)
class UnexpectedCharacter(Diagnostic):
    """A character that no token begins with."""

    code: ClassVar[str] = "KG0102"
    rule: ClassVar[str] = "Outside comments, a file holds only the language's tokens."

    character: str

    @property
    def headline(self) -> str:
        """Names the character."""
        return f"The character '{self.character}' has no meaning in the language."

    @property
    def label(self) -> str:
        """Its number and name, for it may look like another one."""
        return described(self.character)

    @property
    def hint(self) -> str:
        """Says what may be meant, and what names are made of."""
        meant = meant_by(self.character)
        names = "names are made of the letters a to z, digits and '_'"
        if not meant and self.character.isalpha():
            return f"{names[0].upper()}{names[1:]}."
        if not meant:
            return "Remove it; it is allowed in comments only."
        instead = "a blank" if meant.isspace() else f"'{meant}'"
        why = f": {names}" if self.character.isalpha() else ""
        return f"Write {instead} in its place{why}."


@final
@dataclass(frozen=True, kw_only=True)
class ForbiddenCharacter(Diagnostic):
    """A character that can't be seen, or that would break a line of the output."""

    code: ClassVar[str] = "KG0103"
    rule: ClassVar[str] = (
        "A file holds no control, bidirectional or line-separating characters but tab "
        "and line feed, comments included."
    )

    codepoint: int

    @property
    def headline(self) -> str:
        """Gives the character's number, for it has no look."""
        return f"The character U+{self.codepoint:04X} is not allowed in a kernel file."

    @property
    def hint(self) -> str:
        """Says what to do."""
        if self.codepoint == ord("\r"):
            return "Save the file with the line endings of Unix or Windows."
        return "Remove it; it is not allowed in comments either."


@final
@dataclass(frozen=True, kw_only=True)
class UnterminatedString(Diagnostic):
    """A quote that is not closed on its line."""

    code: ClassVar[str] = "KG0104"
    rule: ClassVar[str] = "A string ends on the line on which it begins."

    @property
    def headline(self) -> str:
        """Says what is missing."""
        return "This string has no closing '\"' on its line."

    @property
    def hint(self) -> str:
        """Says where strings stand, and how."""
        return "Close it where the path ends, as in 'use \"math.kern\";'."


@final
@dataclass(frozen=True, kw_only=True)
class MisplacedDoc(Diagnostic):
    """A `///` that documents nothing, or would document what its author didn't mean."""

    code: ClassVar[str] = "KG0105"
    rule: ClassVar[str] = (
        "A '///' comment is on its own line, directly before the item, parameter, "
        "output or field that it documents."
    )

    @property
    def headline(self) -> str:
        """Says that it documents nothing."""
        return "This doc comment documents nothing."

    @property
    def hint(self) -> str:
        """Says where doc comments stand."""
        return (
            "Put it on its own line before an item, parameter, output or field, "
            "or write '//'."
        )


@final
@dataclass(frozen=True, kw_only=True)
class MisplacedFileDoc(Diagnostic):
    """A `//!` after the start of the file."""

    code: ClassVar[str] = "KG0106"
    rule: ClassVar[str] = "A '//!' comment is at the start of the file."

    @property
    def headline(self) -> str:
        """Says where it stands."""
        return "A '//!' comment documents the file, and comes first in it."

    @property
    def hint(self) -> str:
        """Names the other kinds of comment."""
        return "Write '///' to document what follows, or '//'."


@final
@dataclass(frozen=True, kw_only=True)
class NestedTooDeep(Diagnostic):
    """An expression deeper than the later stages are made to walk."""

    code: ClassVar[str] = "KG0107"
    rule: ClassVar[str] = "An expression is nested no deeper than the limit."

    limit: int

    @property
    def headline(self) -> str:
        """States the limit."""
        return f"This expression is nested more than {self.limit} levels deep."

    @property
    def hint(self) -> str:
        """Suggests to name a part."""
        return "Name a part of it with 'let'."


@final
@dataclass(frozen=True, kw_only=True)
class TooManyIndices(Diagnostic):
    """More indices at one place, or axes of a tensor, than loops can be nested."""

    code: ClassVar[str] = "KG0137"
    rule: ClassVar[str] = "There are no more indices or axes than the limit."

    noun: str
    limit: int

    @property
    def headline(self) -> str:
        """States the limit."""
        return f"There are more than {self.limit} {self.noun} here."

    @property
    def hint(self) -> str:
        """Suggests what to do with fewer."""
        return "Join axes that belong together, or name a part of it with 'let'."


@final
@dataclass(frozen=True, kw_only=True)
class LongChain(Diagnostic):
    """A chain of operators longer than the later stages are made to walk."""

    code: ClassVar[str] = "KG0134"
    rule: ClassVar[str] = "A chain of operators is no longer than the limit."

    limit: int

    @property
    def headline(self) -> str:
        """States the limit."""
        return (
            "This chain of operators is too long: it is nested more than "
            f"{self.limit} levels deep."
        )

    @property
    def hint(self) -> str:
        """Suggests to name a part, or to let an index run."""
        return (
            "Name a part of it with 'let'; a repetition is a reduction, such as "
            "'sum[i < 9] ...'."
        )


@final
@dataclass(frozen=True, kw_only=True)
class MalformedNumber(Diagnostic):
    """A number with a suffix, a foreign prefix or a bare point."""

    code: ClassVar[str] = "KG0115"
    rule: ClassVar[str] = "A number is written as '1', '0xff', '1.0', '0.5' or '1e-8'."

    number: str
    remedy: str

    @property
    def headline(self) -> str:
        """Quotes it."""
        return f"'{self.number}' is not a number of the language."

    @property
    def hint(self) -> str:
        """Shows what is meant, or the forms there are."""
        if " * " in self.remedy:
            return f"Write '{self.remedy}' for a product: a number has no unit."
        if self.remedy:
            suffixed = self.number[-1].isalpha()
            why = ": a number has the type of its place" if suffixed else ""
            return f"Write '{self.remedy}'{why}."
        return "Numbers look like '1', '0xff', '1.0', '0.5' or '1e-8'."


@final
@dataclass(frozen=True, kw_only=True)
class UnknownWord(Diagnostic):
    """A word that stands where one of the language's does, and is like it."""

    code: ClassVar[str] = "KG0135"
    rule: ClassVar[str] = "Keywords are spelled exactly."

    word: str
    suggestion: str

    @property
    def headline(self) -> str:
        """Names the word."""
        return f"The language has no word '{self.word}'."

    @property
    def hint(self) -> str:
        """Offers the one that it is like."""
        return did_you_mean(self.suggestion)


@final
@dataclass(frozen=True, kw_only=True)
class NotAName(Diagnostic):
    """A name with a sign in it, or one that begins with a digit."""

    code: ClassVar[str] = "KG0136"
    rule: ClassVar[str] = (
        "A name is made of the letters a to z, digits and '_', and begins with no "
        "digit."
    )

    name: str
    instead: str

    @property
    def headline(self) -> str:
        """Quotes it."""
        return f"'{self.name}' can't be a name."

    @property
    def hint(self) -> str:
        """Shows one that is like it, and says what names are made of."""
        return (
            f"Write '{self.instead}': a name is made of the letters a to z, digits and "
            "'_', and begins with no digit."
        )


@final
@dataclass(frozen=True, kw_only=True)
class NumberTooLong(Diagnostic):
    """A whole number beyond every type, and beyond what is worth converting."""

    code: ClassVar[str] = "KG0119"
    rule: ClassVar[str] = "A whole number has at most 100 digits."

    digits: int

    @property
    def headline(self) -> str:
        """Counts the digits."""
        return f"This number has {self.digits} digits, more than any type can hold."

    @property
    def hint(self) -> str:
        """Shows another form."""
        return "A large value of type f32 is written as '1e30'."


def _alternatives(words: tuple[str, ...]) -> str:
    """`a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
