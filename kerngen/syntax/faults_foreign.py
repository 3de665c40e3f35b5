"""Syntax errors that are habits from other languages, or typos: codes KG01xx.

They are syntax errors too, but common enough to be answered by name.
"""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, Edit


class ChainedComparison(
    Diagnostic,
    code="KG0108",
    message="Comparisons can't be chained.",
    label="a second comparison",
    help="Join two comparisons with 'and', as in 'a < b and b < c'.",
):
    """`a < b < c`."""


class AssignmentInExpression(
    Diagnostic,
    code="KG0109",
    message="'=' assigns; it can't be used inside an expression.",
    help="{remedy}",
):
    """`=` where a value is wanted."""

    remedy: str


class ComparisonAsStatement(
    Diagnostic,
    code="KG0110",
    message="'==' compares; a statement assigns with '='.",
    help="Write '='.",
):
    """`==` where `=` is wanted."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Write the one for the other."""
        return (Edit(self.span, "="),)


class MissingSemicolon(
    Diagnostic,
    code="KG0111",
    message="A ';' is missing.",
    label="expected ';' here",
):
    """A statement that runs into what follows."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add it."""
        return (Edit(self.span, ";"),)


class SemicolonAfterValue(
    Diagnostic,
    code="KG0112",
    message="The value of a function or branch is not followed by ';'.",
    help="Remove the ';'.",
):
    """`{ x; }` where the braces hold a value."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Remove it."""
        return (Edit(self.span, ""),)


class ReservedWord(
    Diagnostic,
    code="KG0113",
    message="'{word}' is a word of the language and can't be a name here.",
    help="{remedy}",
):
    word: str
    remedy: str


class ForeignSpelling(
    Diagnostic,
    code="KG0114",
    message="The language has no '{found}'.",
    help="Write {instead}.",
):
    found: str
    instead: str


class IndexNotBare(
    Diagnostic,
    code="KG0116",
    message="A 'let' or a reduction introduces each index by a bare name.",
    help="{remedy}",
):
    """Something else than a name where a `let` or reduction introduces an index."""

    remedy: str


class WrittenType(
    Diagnostic,
    code="KG0117",
    message="A 'let' or 'host' has the type of its value, which is not written.",
    help="Remove the ':' and the type.",
):
    """`let x: f32 = ...`."""


class EmptyBrackets(
    Diagnostic,
    code="KG0118",
    message="These brackets need an index.",
    help="A value of rank 0 is read and written by its bare name, as in 's = 0.0;'.",
):
    """`s[]` in a statement."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Remove the brackets."""
        return (Edit(self.span, ""),)


class MisplacedMut(
    Diagnostic,
    code="KG0120",
    message="Only a tensor parameter of a kernel is marked 'mut'.",
    help="{remedy}",
):
    """`let mut`, or a `mut` output."""

    remedy: str


class NameAndType(
    Diagnostic,
    code="KG0121",
    message="{what} is written as its name, ':' and its type.",
    help="{remedy}",
):
    """`-> f32[n]`, or a parameter without a type."""

    what: str
    remedy: str


class MissingElse(
    Diagnostic,
    code="KG0122",
    message="An 'if' is a value, so it needs an 'else'.",
    label="expected 'else' here",
    help="Add the value for the other case, as in 'else {{ 0.0 }}'.",
):
    """`if c { a }` where a value is wanted."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Add a branch."""
        return (Edit(self.span, " else { 0.0 }"),)


class SeparateSubscripts(
    Diagnostic,
    code="KG0123",
    message="All subscripts are in one pair of brackets.",
    help="Write '{joined}'.",
):
    """`z[i][j]`."""

    joined: str


class ForeignReduction(
    Diagnostic,
    code="KG0124",
    message=(
        "'{name}' is not a reduction; the reductions are 'sum', 'prod', 'max', 'min', "
        "'argmax' and 'argmin'."
    ),
    help="Write {instead}.",
):
    """`mean[j] x[j]`."""

    name: str
    instead: str


class ReductionForm(
    Diagnostic,
    code="KG0125",
    message="'{name}' names the indices to reduce over in brackets.",
    help="Write '{example}'.",
):
    """`sum x[j]` or `sum[] x`."""

    name: str
    example: str


class ForeignIf(
    Diagnostic,
    code="KG0126",
    message="An 'if' is a value, written 'if c {{ a }} else {{ b }}'.",
    help="{remedy}",
):
    """`if` as a statement, after its value, or without braces."""

    remedy: str


class DivisionComment(
    Diagnostic,
    code="KG0127",
    message="'//' begins a comment, so the rest of this line is not read.",
    help="Integers are divided by '/', which drops the fraction.",
):
    """`x[i // 2]`."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Divide."""
        return (Edit(self.span, "/"),)


class NamedArgument(
    Diagnostic,
    code="KG0128",
    message="Arguments are passed by position, not by name.",
    help="{remedy}",
):
    """`max(x, axis=1)`."""

    remedy: str


class ForeignType(
    Diagnostic,
    code="KG0129",
    message="'{found}' is not how a type is written.",
    help="Write {written}.",
):
    """`vec3<f32>`, or a pointer."""

    found: str
    instead: str
    why: str = ""

    @property
    def written(self) -> str:
        """How the type is written, and why where that is not plain."""
        return f"'{self.instead}'{self.why}"


class Slice(
    Diagnostic,
    code="KG0130",
    message="A subscript picks one element: there are no slices.",
    help=(
        "Use an index, which ranges over the axis, as in 'sum[j] x[i, j]' or 'x[i + "
        "1]'."
    ),
):
    """`x[i, :]`."""


class UnnamedAxis(
    Diagnostic,
    code="KG0131",
    message="Each axis of a tensor has a name or a length.",
    help="Write 'f32[m, n]' or 'f32[3]'; axes of one name have one length.",
):
    """`f32[:, :]`."""


class UndeclaredValue(
    Diagnostic,
    code="KG0132",
    message="A value is introduced by 'let', without its type.",
    help=(
        "Write 'let {name} = ...;', or 'let {name}[{index}] = ...;' for one per index."
    ),
):
    """`float t = x[i];`."""

    name: str

    @property
    def index(self) -> str:
        """A name for an index that differs from the name of the value."""
        return "j" if self.name == "i" else "i"


class MethodCall(
    Diagnostic,
    code="KG0133",
    message="A function is called by its name alone.",
    help="Write {instead}.",
):
    """`x[i].exp()`."""

    instead: str
