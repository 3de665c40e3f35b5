"""Diagnostics of syntax from other languages, and of typos: codes KG01xx.

They are syntax errors too, but common enough to be answered by name.
"""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, Edit


class ChainedComparison(Diagnostic, code="KG0108"):
    """A chained comparison: `a < b < c`."""

    MESSAGE = "Comparisons can't be chained."
    LABEL = "a second comparison"
    HELP = "Join two comparisons with 'and', as in 'a < b and b < c'."


class AssignmentInExpression(Diagnostic, code="KG0109"):
    """An assignment `=` inside an expression."""

    MESSAGE = "'=' assigns; it can't be used inside an expression."
    remedy: str


class ComparisonAsStatement(Diagnostic, code="KG0110"):
    """A statement with `==` instead of `=`."""

    MESSAGE = "'==' compares; a statement assigns with '='."
    HELP = "Write '='."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Replace `==` by `=`."""
        return (Edit(self.span, "="),)


class MissingSemicolon(Diagnostic, code="KG0111"):
    """A statement without its `;`."""

    MESSAGE = "A ';' is missing."
    LABEL = "expected ';' here"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add the `;`."""
        return (Edit(self.span, ";"),)


class SemicolonAfterValue(Diagnostic, code="KG0112"):
    """A `;` after the value in braces: `{ x; }`."""

    MESSAGE = "The value of a function or branch is not followed by ';'."
    HELP = "Remove the ';'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Remove the `;`."""
        return (Edit(self.span, ""),)


class ReservedWord(Diagnostic, code="KG0113"):
    MESSAGE = "'{word}' is a word of the language and can't be a name here."
    word: str
    remedy: str


class ForeignSpelling(Diagnostic, code="KG0114"):
    MESSAGE = "The language has no '{found}'."
    HELP = "Write {instead}."
    found: str
    instead: str


class IndexNotBare(Diagnostic, code="KG0116"):
    """Something other than a name where a `let` or reduction declares an index."""

    MESSAGE = "A 'let' or a reduction introduces each index by a bare name."
    remedy: str


class WrittenType(Diagnostic, code="KG0117"):
    """A `let` with a type: `let x: f32 = ...`."""

    MESSAGE = "A 'let' or 'host' has the type of its value, which is not written."
    HELP = "Remove the ':' and the type."


class EmptyBrackets(Diagnostic, code="KG0118"):
    """A scalar with empty brackets: `s[]`."""

    MESSAGE = "These brackets need an index."
    HELP = "A value of rank 0 is read and written by its bare name, as in 's = 0.0;'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Remove the brackets."""
        return (Edit(self.span, ""),)


class MisplacedMut(Diagnostic, code="KG0120"):
    """A `mut` that is not before a parameter: `let mut`, or a `mut` output."""

    MESSAGE = "Only a tensor parameter of a kernel is marked 'mut'."
    remedy: str


class NameAndType(Diagnostic, code="KG0121"):
    """A parameter or output without its name or its type: `-> f32[n]`."""

    MESSAGE = "{what} is written as its name, ':' and its type."
    what: str
    remedy: str


class MissingElse(Diagnostic, code="KG0122"):
    """An `if` without `else` as a value: `if c { a }`."""

    MESSAGE = "An 'if' is a value, so it needs an 'else'."
    LABEL = "expected 'else' here"
    HELP = "Add the value for the other case, as in 'else {{ 0.0 }}'."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add an `else` branch."""
        return (Edit(self.span, " else { 0.0 }"),)


class SeparateSubscripts(Diagnostic, code="KG0123"):
    """Subscripts in separate brackets: `z[i][j]`."""

    MESSAGE = "All subscripts are in one pair of brackets."
    HELP = "Write '{joined}'."
    joined: str


class ForeignReduction(Diagnostic, code="KG0124"):
    """A reduction that does not exist: `mean[j] x[j]`."""

    MESSAGE = (
        "'{name}' is not a reduction; the reductions are 'sum', 'prod', 'max', 'min', "
        "'argmax' and 'argmin'."
    )
    HELP = "Write {instead}."
    name: str
    instead: str


class ReductionForm(Diagnostic, code="KG0125"):
    """A reduction without its index: `sum x[j]` or `sum[] x`."""

    MESSAGE = "'{name}' names the indices to reduce over in brackets."
    HELP = "Write '{example}'."
    name: str
    example: str


class ForeignIf(Diagnostic, code="KG0126"):
    """An `if` as in other languages: as a statement, after its value, without braces."""

    MESSAGE = "An 'if' is a value, written 'if c {{ a }} else {{ b }}'."
    remedy: str


class DivisionComment(Diagnostic, code="KG0127"):
    """A `//` meant as a division, which begins a comment: `x[i // 2]`."""

    MESSAGE = "'//' begins a comment, so the rest of this line is not read."
    HELP = "Integers are divided by '/', which drops the fraction."

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Replace `//` by `/`."""
        return (Edit(self.span, "/"),)


class NamedArgument(Diagnostic, code="KG0128"):
    """An argument by name: `max(x, axis=1)`."""

    MESSAGE = "Arguments are passed by position, not by name."
    remedy: str


class ForeignType(Diagnostic, code="KG0129"):
    """A type in another language's form: `vec3<f32>`, or a pointer."""

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
    """A slice as a subscript: `x[i, :]`."""

    MESSAGE = "A subscript picks one element: there are no slices."
    HELP = (
        "Use an index, which ranges over the axis, as in 'sum[j] x[i, j]' or 'x[i + "
        "1]'."
    )


class UnnamedAxis(Diagnostic, code="KG0131"):
    """An axis without a length: `f32[:, :]`."""

    MESSAGE = "Each axis of a tensor has a name or a length."
    HELP = "Write 'f32[m, n]' or 'f32[3]'; axes of one name have one length."


class UndeclaredValue(Diagnostic, code="KG0132"):
    """A declaration as in C: `float t = x[i];`."""

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
    """A method call: `x[i].exp()`."""

    MESSAGE = "A function is called by its name alone."
    HELP = "Write {instead}."
    instead: str
