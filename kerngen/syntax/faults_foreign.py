"""Diagnostics of syntax from other languages, and of typos: codes KG01xx.

They are syntax errors too, but common enough to be answered by name.
"""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic


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
