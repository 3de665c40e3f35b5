"""Diagnostics of syntax errors: codes KG01xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, Edit, related
from kerngen.source.similar import did_you_mean
from kerngen.source.text import Span
from kerngen.syntax.mistakes.lookalikes import described, meant_by


class UnexpectedToken(Diagnostic, code="KG0101"):
    MESSAGE = "Expected {alternatives}, found {found}."
    found: str
    expected: tuple[str, ...]
    opening: Span | None = related("this '{here}' is still open", default=None)
    remedy: str = ""

    @property
    def alternatives(self) -> str:
        """The expected tokens, and the one found, in words."""
        *first, last = self.expected
        return f"{', '.join(first)} or {last}" if first else last


class UnexpectedCharacter(Diagnostic, code="KG0102"):
    MESSAGE = "The character '{character}' has no meaning in the language."
    LABEL = "{why}"
    character: str

    @property
    def why(self) -> str:
        """The character's number and name, as it may look like another one."""
        return described(self.character)

    @property
    def help(self) -> str:
        """The character that was probably meant, and those that names are made of."""
        meant = meant_by(self.character)
        names = "names are made of the letters a to z, digits and '_'"
        if not meant and self.character.isalpha():
            return f"{names[0].upper()}{names[1:]}."
        if not meant:
            return "Remove it; it is allowed in comments only."
        instead = "a blank" if meant.isspace() else f"'{meant}'"
        why = f": {names}" if self.character.isalpha() else ""
        return f"Write {instead} in its place{why}."


class ForbiddenCharacter(Diagnostic, code="KG0103"):
    MESSAGE = "The character U+{codepoint:04X} is not allowed in a kernel file."
    codepoint: int

    @property
    def help(self) -> str:
        """The correction to make."""
        if self.codepoint == ord("\r"):
            return "Save the file with the line endings of Unix or Windows."
        return "Remove it; it is not allowed in comments either."


class UnterminatedString(Diagnostic, code="KG0104"):
    MESSAGE = "This string has no closing '\"' on its line."
    HELP = "Close it where the path ends, as in 'use \"math.kern\";'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add the closing quote, before the ';' if there is one."""
        path = self.span.text.rstrip().removesuffix(";")
        return (Edit(self.span, f'{path}";'),)


class MisplacedDoc(Diagnostic, code="KG0105"):
    MESSAGE = "This doc comment documents nothing."
    HELP = (
        "Put it on its own line before an item, parameter, output or field, or write "
        "'//'."
    )


class MisplacedFileDoc(Diagnostic, code="KG0106"):
    MESSAGE = "A '//!' comment documents the file, and comes first in it."
    HELP = "Write '///' to document what follows, or '//'."


class NestedTooDeep(Diagnostic, code="KG0107"):
    MESSAGE = "This expression is nested more than {limit} levels deep."
    HELP = "Name a part of it with 'let'."
    limit: int


class TooManyIndices(Diagnostic, code="KG0137"):
    MESSAGE = "There are more than {limit} {noun} here."
    HELP = "Join axes that belong together, or name a part of it with 'let'."
    noun: str
    limit: int


class LongChain(Diagnostic, code="KG0134"):
    MESSAGE = (
        "This chain of operators is too long: it is nested more than {limit} levels "
        "deep."
    )
    HELP = (
        "Name a part of it with 'let'; a repetition is a reduction, such as 'sum[i < "
        "9] ...'."
    )
    limit: int


class MalformedNumber(Diagnostic, code="KG0115"):
    MESSAGE = "'{number}' is not a number of the language."
    number: str
    instead: str

    @property
    def help(self) -> str:
        """The number that was probably meant, or the valid forms."""
        if " * " in self.instead:
            return f"Write '{self.instead}' for a product: a number has no unit."
        if self.instead:
            suffixed = self.number[-1].isalpha()
            why = ": a number has the type of its place" if suffixed else ""
            return f"Write '{self.instead}'{why}."
        return "Numbers look like '1', '0xff', '1.0', '0.5' or '1e-8'."


class UnknownWord(Diagnostic, code="KG0135"):
    MESSAGE = "The language has no word '{text}'."
    suggestion: str

    @property
    def help(self) -> str:
        """The known word that it resembles."""
        return did_you_mean(self.suggestion)


class NotAName(Diagnostic, code="KG0136"):
    MESSAGE = "'{name}' can't be a name."
    HELP = (
        "Write '{instead}': a name is made of the letters a to z, digits and '_', and "
        "begins with no digit."
    )
    name: str
    instead: str


class NumberTooLong(Diagnostic, code="KG0119"):
    MESSAGE = "This number has {digits} digits, more than any type can hold."
    HELP = "A large value of type f32 is written as '1e30'."
    digits: int
