"""Diagnostics of indices, subscripts and dims: codes KG04xx."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from kerngen.ir.builtins.table import TRUNCATING
from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span
from kerngen.source.words import counted


class UnboundIndex(Diagnostic, code="KG0401"):
    MESSAGE = (
        "The index '{text}' is neither on the left nor in the brackets of a reduction."
    )
    HELP = {
        "ended": (
            "A reduction introduces it, but ends before this: put the reduction's body "
            "in parentheses."
        ),
        "end": "The last element of an axis of length 'n' is at 'n - 1'.",
        "slip": "Did you mean '{suggestion}'?",
        "let": (
            "For one value per '{text}', write 'let {target}[{text}] = ...'; to sum "
            "over it, 'sum[{text}] ...'."
        ),
        "sum": "To sum over it, write 'sum[{text}] ...'.",
    }
    case: Literal["ended", "end", "slip", "let", "sum"]
    suggestion: str = ""
    target: str = ""


class IndexRebound(Diagnostic, code="KG0402"):
    MESSAGE = "The index '{text}' is introduced already."
    LABEL = "introduced again here"
    HELP = "Give the inner index another name."
    other: Span = related("introduced here")


class RangeNotFound(Diagnostic, code="KG0403"):
    MESSAGE = "{which} can't be inferred."
    LABEL = "it subscripts no axis by itself"
    HELP = (
        "Use an index as a subscript by itself, or give the range where it is "
        "introduced: '{ranges}'."
    )
    names: tuple[str, ...]
    lengths: tuple[str, ...]

    @property
    def which(self) -> str:
        """The words for the missing ranges: `the range of i`."""
        *first, last = (f"'{name}'" for name in self.names)
        if not first:
            return f"The range of the index {last}"
        return f"The ranges of the indices {', '.join(first)} and {last}"

    @property
    def ranges(self) -> str:
        """How to write the indices with ranges."""
        pairs = zip(self.names, self.lengths, strict=True)
        return ", ".join(f"{name} < {length}" for name, length in pairs)


class DimMismatch(Diagnostic, code="KG0404"):
    MESSAGE = (
        "The index '{text}' ranges over '{dim}', but axis {axis} of '{tensor}' is "
        "'{other_dim}'."
    )
    LABEL = "this axis is '{other_dim}'"
    HELP = (
        "Check the order of the subscripts; if the two lengths are always equal, use "
        "one dim for both."
    )
    other: Span = related("'{text}' ranges over '{dim}' because of this")
    dim: str
    axis: int
    tensor: str
    other_dim: str
    declared: Span | None = related(
        "axis {axis} of '{tensor}' is '{other_dim}' here", default=None
    )
    remedy: str = ""


class RangeTooLong(Diagnostic, code="KG0405"):
    MESSAGE = (
        "The index '{text}' runs to {end}, but axis {axis} of '{tensor}' has only "
        "{available}."
    )
    LABEL = "this axis has {available}"
    other: Span = related("'{text}' runs to {end} because of this")
    length: int | str
    axis: int
    tensor: str
    available: int
    declared: Span | None = related(
        "axis {axis} of '{tensor}' has {available} here", default=None
    )

    @property
    def end(self) -> str:
        """The length that the index ranges over."""
        return str(self.length) if isinstance(self.length, int) else f"'{self.length}'"

    @property
    def help(self) -> str:
        """The correction to write."""
        if self.available == 1:
            return "An axis of length 1 is not broadcast: subscript it with '0'."
        last = f"min({self.text}, {self.available - 1})"
        return f"Check the order of the subscripts, or subscript with '{last}'."


class SubscriptCount(Diagnostic, code="KG0406"):
    MESSAGE = "'{tensor}' has {axes}, but {given}."
    HELP = (
        "Write '{example}', with '{new}' as an index of the reduction, too.",
        "Write '{example}'.",
    )
    other: Span = related("'{tensor}' is declared here")
    tensor: str
    rank: int
    count: int
    example: str
    new: str = ""

    @property
    def axes(self) -> str:
        """The tensor's number of axes, in words."""
        return counted(self.rank, "axis", "axes") if self.rank else "no axes"

    @property
    def given(self) -> str:
        """The given number of subscripts, in words."""
        verb = "is" if self.count == 1 else "are"
        number = counted(self.count, "subscript") if self.count else "no subscripts"
        return f"{number} {verb} given"


class SubscriptType(Diagnostic, code="KG0407"):
    MESSAGE = "A subscript is 'i32' or 'u32', but this is '{actual}'."
    LABEL = "'{actual}'"
    actual: str
    remedy: str


class NotSubscriptable(Diagnostic, code="KG0408"):
    MESSAGE = "'{base}' can't be subscripted: it is {kind}."
    declared: Span | None = related("'{base}' is declared here", default=None)
    base: str
    kind: str
    remedy: str


class DimAsIndex(Diagnostic, code="KG0409"):
    MESSAGE = "'{text}' is a dim, not an index."
    HELP = {
        "index": "Give the index a name that is not a dim, such as 'i' or 'p'.",
        "last": (
            "Elements are numbered from 0, so the last one is at '{text} - 1'; give the "
            "index a name that is not a dim, such as 'i' or 'p'."
        ),
    }
    case: Literal["index", "last"]
    declared: Span | None = related("the length of this axis", default=None)


NoDim: TypeAlias = Literal[
    "tensor", "slip", "no dims", "taken, no dims", "dims", "taken, dims"
]
"""The kind of name that an output's axis has, and whether the kernel has dims."""


class OutputOnlyDim(Diagnostic, code="KG0410"):
    MESSAGE = "The dim '{text}' of an output is not a dim of any input."
    HELP = {
        "tensor": (
            "'{text}' is on the device, and lengths must be known before the kernel "
            "runs: pass it as a scalar, '{text}: u32'."
        ),
        "slip": "Did you mean '{suggestion}'?",
        "no dims": "Add an input that has it; or take it as a scalar: '{text}: u32'.",
        "taken, no dims": "Add an input that has it.",
        "dims": (
            "The dims of the inputs are {dims}; or take it as a scalar: '{text}: u32'."
        ),
        "taken, dims": "The dims of the inputs are {dims}.",
    }
    case: NoDim
    suggestion: str = ""
    dims: tuple[str, ...] = ()


class AxisForm(Diagnostic, code="KG0411"):
    MESSAGE = "An axis is a name or a whole number from 1 to 2147483647."
    HELP = {
        "empty": "An axis that may be empty has a name: 'f32[n]'.",
        "fraction": "Write a whole number, or a name: 'f32[n]'.",
        "long": ("No tensor is that long; an axis of any length has a name: 'f32[n]'."),
        "constant": "The constant '{name}' is {value}, of type '{type}'.",
    }
    case: Literal["empty", "fraction", "long", "constant"]
    name: str = ""
    value: float = 0
    type: str = ""


class IndexAsValue(Diagnostic, code="KG0412"):
    MESSAGE = "The index '{text}' is not in scope here."
    HELP = (
        "An index exists only in the statement or reduction that introduces it. A "
        "reduction ends at '/', '%', '+', '-' and comparisons: put its body in "
        "parentheses."
    )
    declared: Span | None = related("'{text}' is introduced here", default=None)


class LengthReads(Diagnostic, code="KG0413"):
    MESSAGE = "{place} can't depend on {what}."
    HELP = (
        "{instead}",
        (
            "The host computes it before the kernel runs, from dims ('n' in "
            "'x: f32[n]'), integer scalars, constants and hosts."
        ),
    )
    declared: Span | None = related("declared here", default=None)
    place: str
    what: str
    instead: str = ""


class LengthType(Diagnostic, code="KG0414"):
    MESSAGE = "{place} is an integer, but this is '{actual}'."
    HELP = "Use integers only; '/' of integers truncates."
    place: str
    actual: str


class LengthValue(Diagnostic, code="KG0415"):
    MESSAGE = "{place} is from 0 to 2147483647, but this is {value}."
    HELP = "Write a length that an axis can have."
    place: str
    value: int


class SubscriptOutside(Diagnostic, code="KG0416"):
    MESSAGE = "The subscript '{text}' {reaches} outside of axis {axis} of '{tensor}'."
    LABEL = "the axis has length {length}"
    reaches: str
    axis: int
    tensor: str
    length: str
    remedy: str


FLOORED: Final = {operator: name for name, operator in TRUNCATING.items()}
"""The built-in that rounds down where an operator rounds toward 0."""


class PlaceOfSeveral(Diagnostic, code="KG0418"):
    MESSAGE = "'{kind}' returns the value of one index, but this has {count}: {listed}."
    HELP = (
        "Name the best of each row first, 'let best[{first}] = {of}[{last}] ...;', "
        "then write '{kind}[{first}] best[{first}]'."
    )
    kind: str
    names: tuple[str, ...]
    of: str

    @property
    def count(self) -> int:
        """The number of indices."""
        return len(self.names)

    @property
    def listed(self) -> str:
        """All indices, as a list in words."""
        return ", ".join(f"'{name}'" for name in self.names)

    @property
    def first(self) -> str:
        """The index to find the position along first."""
        return self.names[0]

    @property
    def last(self) -> str:
        """The other indices."""
        return ", ".join(self.names[1:])


class NegativeDividend(Diagnostic, code="KG0417"):
    SEVERITY = "warning"
    MESSAGE = "'{operator}' rounds toward 0, and what it divides can be negative."
    LABEL = "of -1 and 3, '/' is 0 and '%' is -1"
    HELP = "{quotient} rounds down, as Python does."
    operator: Literal["/", "%"]
    left: str
    right: str
    within: str = ""

    @property
    def quotient(self) -> str:
        """The quotient to write instead; within a function, with the function's name."""
        form = f"'{self.function}({self.left}, {self.right})'"
        return f"In '{self.within}', {form}" if self.within else form

    @property
    def function(self) -> str:
        """The built-in that rounds down."""
        return FLOORED[self.operator]
