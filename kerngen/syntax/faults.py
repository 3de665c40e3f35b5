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


# Syntax of other languages, and typos: common enough to be answered by name


class ChainedComparison(Diagnostic, code="KG0108"):
    MESSAGE = "Comparisons can't be chained."
    LABEL = "a second comparison"
    HELP = "Join two comparisons with 'and', as in 'a < b and b < c'."


class AssignmentInExpression(Diagnostic, code="KG0109"):
    MESSAGE = "'=' assigns; it can't be used inside an expression."
    remedy: str


class ComparisonAsStatement(Diagnostic, code="KG0110"):
    MESSAGE = "'==' compares; a statement assigns with '='."
    HELP = "Write '='."
    EDIT = "="


class MissingSemicolon(Diagnostic, code="KG0111"):
    MESSAGE = "A ';' is missing."
    LABEL = "expected ';' here"
    EDIT = ";"


class SemicolonAfterValue(Diagnostic, code="KG0112"):
    MESSAGE = "The value of a function or branch is not followed by ';'."
    HELP = "Remove the ';'."
    EDIT = ""


class ReservedWord(Diagnostic, code="KG0113"):
    MESSAGE = "'{text}' is a word of the language and can't be a name here."
    remedy: str


class ForeignSpelling(Diagnostic, code="KG0114"):
    MESSAGE = "The language has no '{found}'."
    HELP = "Write {instead}."
    found: str
    instead: str


class IndexNotBare(Diagnostic, code="KG0116"):
    MESSAGE = "A 'let' or a reduction introduces each index by a bare name."
    remedy: str


class WrittenType(Diagnostic, code="KG0117"):
    MESSAGE = "A 'let' or 'host' has the type of its value, which is not written."
    HELP = "Remove the ':' and the type."


class EmptyBrackets(Diagnostic, code="KG0118"):
    MESSAGE = "These brackets need an index."
    HELP = "A value of rank 0 is read and written by its bare name, as in 's = 0.0;'."
    EDIT = ""


class MisplacedMut(Diagnostic, code="KG0120"):
    MESSAGE = "Only a tensor parameter of a kernel is marked 'mut'."
    remedy: str


class NameAndType(Diagnostic, code="KG0121"):
    MESSAGE = "{what} is written as its name, ':' and its type."
    what: str
    remedy: str


class MissingElse(Diagnostic, code="KG0122"):
    MESSAGE = "An 'if' is a value, so it needs an 'else'."
    LABEL = "expected 'else' here"
    HELP = "Add the value for the other case, as in 'else {{ 0.0 }}'."
    EDIT = " else { 0.0 }"


class SeparateSubscripts(Diagnostic, code="KG0123"):
    MESSAGE = "All subscripts are in one pair of brackets."
    HELP = "Write '{joined}'."
    joined: str


class ForeignReduction(Diagnostic, code="KG0124"):
    MESSAGE = (
        "'{text}' is not a reduction; the reductions are 'sum', 'prod', 'max', 'min', "
        "'argmax' and 'argmin'."
    )
    HELP = "Write {instead}."
    instead: str


class ReductionForm(Diagnostic, code="KG0125"):
    MESSAGE = "'{name}' names the indices to reduce over in brackets."
    HELP = "Write '{example}'."
    name: str
    example: str


class ForeignIf(Diagnostic, code="KG0126"):
    MESSAGE = "An 'if' is a value, written 'if c {{ a }} else {{ b }}'."
    remedy: str


class DivisionComment(Diagnostic, code="KG0127"):
    MESSAGE = "'//' begins a comment, so the rest of this line is not read."
    HELP = "Integers are divided by '/', which drops the fraction."
    EDIT = "/"


class NamedArgument(Diagnostic, code="KG0128"):
    MESSAGE = "Arguments are passed by position, not by name."
    remedy: str


class ForeignType(Diagnostic, code="KG0129"):
    MESSAGE = "'{found}' is not how a type is written."
    HELP = "Write {written}."
    found: str
    instead: str
    why: str = ""

    @property
    def written(self) -> str:
        """The type as it is written here, with the reason where that is not obvious."""
        return f"'{self.instead}'{self.why}"


class Slice(Diagnostic, code="KG0130"):
    MESSAGE = "A subscript picks one element: there are no slices."
    HELP = (
        "Use an index, which ranges over the axis, as in 'sum[j] x[i, j]' or 'x[i + "
        "1]'."
    )


class UnnamedAxis(Diagnostic, code="KG0131"):
    MESSAGE = "Each axis of a tensor has a name or a length."
    HELP = "Write 'f32[m, n]' or 'f32[3]'; axes of one name have one length."


class UndeclaredValue(Diagnostic, code="KG0132"):
    MESSAGE = "A value is introduced by 'let', without its type."
    HELP = (
        "Write 'let {name} = ...;', or 'let {name}[{index}] = ...;' for one per index."
    )
    name: str

    @property
    def index(self) -> str:
        """An index name that differs from the value's name."""
        return "j" if self.name == "i" else "i"


class MethodCall(Diagnostic, code="KG0133"):
    MESSAGE = "A function is called by its name alone."
    HELP = "Write {instead}."
    instead: str
