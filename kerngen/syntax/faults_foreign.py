"""Syntax errors that are habits from other languages, or typos: codes KG01xx.

They are syntax errors too, but common enough to be answered by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.worded import Worded


@final
@dataclass(frozen=True, kw_only=True)
class ChainedComparison(Worded):
    """`a < b < c`."""

    code: ClassVar[str] = "KG0108"
    rule: ClassVar[str] = "Comparisons are not chained."
    says: ClassVar[str] = "Comparisons can't be chained."
    points: ClassVar[str] = "a second comparison"
    advice: ClassVar[str] = "Join two comparisons with 'and', as in 'a < b and b < c'."


@final
@dataclass(frozen=True, kw_only=True)
class AssignmentInExpression(Worded):
    """`=` where a value is wanted."""

    code: ClassVar[str] = "KG0109"
    rule: ClassVar[str] = "'=' assigns and is no operator; '==' compares."
    says: ClassVar[str] = "'=' assigns; it can't be used inside an expression."
    advice: ClassVar[str] = "{remedy}"

    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ComparisonAsStatement(Worded):
    """`==` where `=` is wanted."""

    code: ClassVar[str] = "KG0110"
    rule: ClassVar[str] = "A statement assigns with '='; '==' compares."
    says: ClassVar[str] = "'==' compares; a statement assigns with '='."
    advice: ClassVar[str] = "Write '='."


@final
@dataclass(frozen=True, kw_only=True)
class MissingSemicolon(Worded):
    """A statement that runs into what follows."""

    code: ClassVar[str] = "KG0111"
    rule: ClassVar[str] = "Statements, constants and 'use' end with ';'."
    says: ClassVar[str] = "A ';' is missing."
    points: ClassVar[str] = "expected ';' here"


@final
@dataclass(frozen=True, kw_only=True)
class SemicolonAfterValue(Worded):
    """`{ x; }` where the braces hold a value."""

    code: ClassVar[str] = "KG0112"
    rule: ClassVar[str] = "The value of a function or branch is not followed by ';'."
    says: ClassVar[str] = "The value of a function or branch is not followed by ';'."
    advice: ClassVar[str] = "Remove the ';'."


@final
@dataclass(frozen=True, kw_only=True)
class ReservedWord(Worded):
    """A word of the language where a name is wanted."""

    code: ClassVar[str] = "KG0113"
    rule: ClassVar[str] = "Keywords and reductions can't name values."
    says: ClassVar[str] = "'{word}' is a word of the language and can't be a name here."
    advice: ClassVar[str] = "{remedy}"

    word: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ForeignSpelling(Worded):
    """Something that other languages write this way."""

    code: ClassVar[str] = "KG0114"
    rule: ClassVar[str] = "Each operator and keyword has one spelling."
    says: ClassVar[str] = "The language has no '{found}'."
    advice: ClassVar[str] = "Write {instead}."

    found: str
    instead: str


@final
@dataclass(frozen=True, kw_only=True)
class IndexNotBare(Worded):
    """Something else than a name where a `let` or reduction introduces an index."""

    code: ClassVar[str] = "KG0116"
    rule: ClassVar[str] = "A 'let' or a reduction introduces each index by a bare name."
    says: ClassVar[str] = "A 'let' or a reduction introduces each index by a bare name."
    advice: ClassVar[str] = "{remedy}"

    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class WrittenType(Worded):
    """`let x: f32 = ...`."""

    code: ClassVar[str] = "KG0117"
    rule: ClassVar[str] = "A 'let' or 'host' has the type of its value."
    says: ClassVar[str] = (
        "A 'let' or 'host' has the type of its value, which is not written."
    )
    advice: ClassVar[str] = "Remove the ':' and the type."


@final
@dataclass(frozen=True, kw_only=True)
class EmptyBrackets(Worded):
    """`s[]` in a statement."""

    code: ClassVar[str] = "KG0118"
    rule: ClassVar[str] = "Brackets hold an index; rank 0 is written by its bare name."
    says: ClassVar[str] = "These brackets need an index."
    advice: ClassVar[str] = (
        "A value of rank 0 is read and written by its bare name, as in 's = 0.0;'."
    )


@final
@dataclass(frozen=True, kw_only=True)
class MisplacedMut(Worded):
    """`let mut`, or a `mut` output."""

    code: ClassVar[str] = "KG0120"
    rule: ClassVar[str] = "Only a tensor parameter of a kernel is marked 'mut'."
    says: ClassVar[str] = "Only a tensor parameter of a kernel is marked 'mut'."
    advice: ClassVar[str] = "{remedy}"

    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class NameAndType(Worded):
    """`-> f32[n]`, or a parameter without a type."""

    code: ClassVar[str] = "KG0121"
    rule: ClassVar[str] = (
        "A parameter, output, field or constant is written 'name: type'."
    )
    says: ClassVar[str] = "{what} is written as its name, ':' and its type."
    advice: ClassVar[str] = "{remedy}"

    what: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class MissingElse(Worded):
    """`if c { a }` where a value is wanted."""

    code: ClassVar[str] = "KG0122"
    rule: ClassVar[str] = "An 'if' has an 'else': it is a value."
    says: ClassVar[str] = "An 'if' is a value, so it needs an 'else'."
    points: ClassVar[str] = "expected 'else' here"
    advice: ClassVar[str] = "Add the value for the other case, as in 'else {{ 0.0 }}'."


@final
@dataclass(frozen=True, kw_only=True)
class SeparateSubscripts(Worded):
    """`z[i][j]`."""

    code: ClassVar[str] = "KG0123"
    rule: ClassVar[str] = "All subscripts are in one pair of brackets."
    says: ClassVar[str] = "All subscripts are in one pair of brackets."
    advice: ClassVar[str] = "Write '{joined}'."

    joined: str


@final
@dataclass(frozen=True, kw_only=True)
class ForeignReduction(Worded):
    """`mean[j] x[j]`."""

    code: ClassVar[str] = "KG0124"
    rule: ClassVar[str] = (
        "The reductions are 'sum', 'prod', 'max', 'min', 'argmax' and 'argmin'."
    )
    says: ClassVar[str] = (
        "'{name}' is not a reduction; the reductions are 'sum', 'prod', 'max', 'min', "
        "'argmax' and 'argmin'."
    )
    advice: ClassVar[str] = "Write {instead}."

    name: str
    instead: str


@final
@dataclass(frozen=True, kw_only=True)
class ReductionForm(Worded):
    """`sum x[j]` or `sum[] x`."""

    code: ClassVar[str] = "KG0125"
    rule: ClassVar[str] = (
        "A reduction names its indices in brackets, and what is reduced follows."
    )
    says: ClassVar[str] = "'{name}' names the indices to reduce over in brackets."
    advice: ClassVar[str] = "Write '{example}'."

    name: str
    example: str


@final
@dataclass(frozen=True, kw_only=True)
class ForeignIf(Worded):
    """`if` as a statement, after its value, or without braces."""

    code: ClassVar[str] = "KG0126"
    rule: ClassVar[str] = "An 'if' is a value: 'if c { a } else { b }'."
    says: ClassVar[str] = "An 'if' is a value, written 'if c {{ a }} else {{ b }}'."
    advice: ClassVar[str] = "{remedy}"

    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class DivisionComment(Worded):
    """`x[i // 2]`."""

    code: ClassVar[str] = "KG0127"
    rule: ClassVar[str] = "'//' begins a comment."
    says: ClassVar[str] = "'//' begins a comment, so the rest of this line is not read."
    advice: ClassVar[str] = "Integers are divided by '/', which drops the fraction."


@final
@dataclass(frozen=True, kw_only=True)
class NamedArgument(Worded):
    """`max(x, axis=1)`."""

    code: ClassVar[str] = "KG0128"
    rule: ClassVar[str] = "Arguments are passed by position."
    says: ClassVar[str] = "Arguments are passed by position, not by name."
    advice: ClassVar[str] = "{remedy}"

    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ForeignType(Worded):
    """`vec3<f32>`, or a pointer."""

    code: ClassVar[str] = "KG0129"
    rule: ClassVar[str] = (
        "Types are names such as 'f32' and 'vec3f'; a tensor is 'f32[n]'."
    )
    says: ClassVar[str] = "'{found}' is not how a type is written."
    advice: ClassVar[str] = "Write {written}."

    found: str
    instead: str
    why: str = ""

    @property
    def written(self) -> str:
        """How the type is written, and why where that is not plain."""
        return f"'{self.instead}'{self.why}"


@final
@dataclass(frozen=True, kw_only=True)
class Slice(Worded):
    """`x[i, :]`."""

    code: ClassVar[str] = "KG0130"
    rule: ClassVar[str] = "A subscript is one element."
    says: ClassVar[str] = "A subscript picks one element: there are no slices."
    advice: ClassVar[str] = (
        "Use an index, which ranges over the axis, as in 'sum[j] x[i, j]' or "
        "'x[i + 1]'."
    )


@final
@dataclass(frozen=True, kw_only=True)
class UnnamedAxis(Worded):
    """`f32[:, :]`."""

    code: ClassVar[str] = "KG0131"
    rule: ClassVar[str] = "Each axis of a tensor has a name or a length."
    says: ClassVar[str] = "Each axis of a tensor has a name or a length."
    advice: ClassVar[str] = (
        "Write 'f32[m, n]' or 'f32[3]'; axes of one name have one length."
    )


@final
@dataclass(frozen=True, kw_only=True)
class UndeclaredValue(Worded):
    """`float t = x[i];`."""

    code: ClassVar[str] = "KG0132"
    rule: ClassVar[str] = "A value is introduced by 'let', without its type."
    says: ClassVar[str] = "A value is introduced by 'let', without its type."
    advice: ClassVar[str] = (
        "Write 'let {name} = ...;', or 'let {name}[{index}] = ...;' for one per index."
    )

    name: str

    @property
    def index(self) -> str:
        """A name for an index that differs from the name of the value."""
        return "j" if self.name == "i" else "i"


@final
@dataclass(frozen=True, kw_only=True)
class MethodCall(Worded):
    """`x[i].exp()`."""

    code: ClassVar[str] = "KG0133"
    rule: ClassVar[str] = "A function is called by its name alone."
    says: ClassVar[str] = "A function is called by its name alone."
    advice: ClassVar[str] = "Write {instead}."

    instead: str
