"""Diagnostics of syntax from other languages, and of typos: codes KG01xx.

They are syntax errors too, but common enough to be answered by name.
"""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, Edit


class ChainedComparison(Diagnostic):
    """A chained comparison: `a < b < c`."""

    CODE = "KG0108"
    MESSAGE = "Comparisons can't be chained."
    LABEL = "a second comparison"
    HELP = "Join two comparisons with 'and', as in 'a < b and b < c'."


class AssignmentInExpression(Diagnostic):
    """An assignment `=` inside an expression."""

    CODE = "KG0109"
    MESSAGE = "'=' assigns; it can't be used inside an expression."
    HELP = "{remedy}"
    remedy: str


class ComparisonAsStatement(Diagnostic):
    """A statement with `==` instead of `=`."""

    CODE = "KG0110"
    MESSAGE = "'==' compares; a statement assigns with '='."
    HELP = "Write '='."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Replace `==` by `=`."""
        return (Edit(self.span, "="),)


class MissingSemicolon(Diagnostic):
    """A statement without its `;`."""

    CODE = "KG0111"
    MESSAGE = "A ';' is missing."
    LABEL = "expected ';' here"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add the `;`."""
        return (Edit(self.span, ";"),)


class SemicolonAfterValue(Diagnostic):
    """A `;` after the value in braces: `{ x; }`."""

    CODE = "KG0112"
    MESSAGE = "The value of a function or branch is not followed by ';'."
    HELP = "Remove the ';'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Remove the `;`."""
        return (Edit(self.span, ""),)


class ReservedWord(Diagnostic):
    CODE = "KG0113"
    MESSAGE = "'{word}' is a word of the language and can't be a name here."
    HELP = "{remedy}"
    word: str
    remedy: str


class ForeignSpelling(Diagnostic):
    CODE = "KG0114"
    MESSAGE = "The language has no '{found}'."
    HELP = "Write {instead}."
    found: str
    instead: str


class IndexNotBare(Diagnostic):
    """Something other than a name where a `let` or reduction declares an index."""

    CODE = "KG0116"
    MESSAGE = "A 'let' or a reduction introduces each index by a bare name."
    HELP = "{remedy}"
    remedy: str


class WrittenType(Diagnostic):
    """A `let` with a type: `let x: f32 = ...`."""

    CODE = "KG0117"
    MESSAGE = "A 'let' or 'host' has the type of its value, which is not written."
    HELP = "Remove the ':' and the type."


class EmptyBrackets(Diagnostic):
    """A scalar with empty brackets: `s[]`."""

    CODE = "KG0118"
    MESSAGE = "These brackets need an index."
    HELP = "A value of rank 0 is read and written by its bare name, as in 's = 0.0;'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Remove the brackets."""
        return (Edit(self.span, ""),)


class MisplacedMut(Diagnostic):
    """A `mut` that is not before a parameter: `let mut`, or a `mut` output."""

    CODE = "KG0120"
    MESSAGE = "Only a tensor parameter of a kernel is marked 'mut'."
    HELP = "{remedy}"
    remedy: str


class NameAndType(Diagnostic):
    """A parameter or output without its name or its type: `-> f32[n]`."""

    CODE = "KG0121"
    MESSAGE = "{what} is written as its name, ':' and its type."
    HELP = "{remedy}"
    what: str
    remedy: str


class MissingElse(Diagnostic):
    """An `if` without `else` as a value: `if c { a }`."""

    CODE = "KG0122"
    MESSAGE = "An 'if' is a value, so it needs an 'else'."
    LABEL = "expected 'else' here"
    HELP = "Add the value for the other case, as in 'else {{ 0.0 }}'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add an `else` branch."""
        return (Edit(self.span, " else { 0.0 }"),)


class SeparateSubscripts(Diagnostic):
    """Subscripts in separate brackets: `z[i][j]`."""

    CODE = "KG0123"
    MESSAGE = "All subscripts are in one pair of brackets."
    HELP = "Write '{joined}'."
    joined: str


class ForeignReduction(Diagnostic):
    """A reduction that does not exist: `mean[j] x[j]`."""

    CODE = "KG0124"
    MESSAGE = (
        "'{name}' is not a reduction; the reductions are 'sum', 'prod', 'max', 'min', "
        "'argmax' and 'argmin'."
    )
    HELP = "Write {instead}."
    name: str
    instead: str


class ReductionForm(Diagnostic):
    """A reduction without its index: `sum x[j]` or `sum[] x`."""

    CODE = "KG0125"
    MESSAGE = "'{name}' names the indices to reduce over in brackets."
    HELP = "Write '{example}'."
    name: str
    example: str


class ForeignIf(Diagnostic):
    """An `if` as in other languages: as a statement, after its value, without braces."""

    CODE = "KG0126"
    MESSAGE = "An 'if' is a value, written 'if c {{ a }} else {{ b }}'."
    HELP = "{remedy}"
    remedy: str


class DivisionComment(Diagnostic):
    """A `//` meant as a division, which begins a comment: `x[i // 2]`."""

    CODE = "KG0127"
    MESSAGE = "'//' begins a comment, so the rest of this line is not read."
    HELP = "Integers are divided by '/', which drops the fraction."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Replace `//` by `/`."""
        return (Edit(self.span, "/"),)


class NamedArgument(Diagnostic):
    """An argument by name: `max(x, axis=1)`."""

    CODE = "KG0128"
    MESSAGE = "Arguments are passed by position, not by name."
    HELP = "{remedy}"
    remedy: str


class ForeignType(Diagnostic):
    """A type in another language's form: `vec3<f32>`, or a pointer."""

    CODE = "KG0129"
    MESSAGE = "'{found}' is not how a type is written."
    HELP = "Write {written}."
    found: str
    instead: str
    why: str = ""

    @property
    def written(self) -> str:
        """The type as it is written here, with the reason where that is not obvious."""
        return f"'{self.instead}'{self.why}"


class Slice(Diagnostic):
    """A slice as a subscript: `x[i, :]`."""

    CODE = "KG0130"
    MESSAGE = "A subscript picks one element: there are no slices."
    HELP = (
        "Use an index, which ranges over the axis, as in 'sum[j] x[i, j]' or 'x[i + "
        "1]'."
    )


class UnnamedAxis(Diagnostic):
    """An axis without a length: `f32[:, :]`."""

    CODE = "KG0131"
    MESSAGE = "Each axis of a tensor has a name or a length."
    HELP = "Write 'f32[m, n]' or 'f32[3]'; axes of one name have one length."


class UndeclaredValue(Diagnostic):
    """A declaration as in C: `float t = x[i];`."""

    CODE = "KG0132"
    MESSAGE = "A value is introduced by 'let', without its type."
    HELP = (
        "Write 'let {name} = ...;', or 'let {name}[{index}] = ...;' for one per index."
    )
    name: str

    @property
    def index(self) -> str:
        """An index name that differs from the value's name."""
        return "j" if self.name == "i" else "i"


class MethodCall(Diagnostic):
    """A method call: `x[i].exp()`."""

    CODE = "KG0133"
    MESSAGE = "A function is called by its name alone."
    HELP = "Write {instead}."
    instead: str
