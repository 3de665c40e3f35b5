"""What can be wrong with indices, subscripts and dims: codes KG04xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, final

from kerngen.ir.builtins.table import TRUNCATING
from kerngen.source.diagnostic import Related
from kerngen.source.text import Span
from kerngen.source.worded import Worded, WordedBeside, WordedNear, counted


@final
@dataclass(frozen=True, kw_only=True)
class UnboundIndex(Worded):
    """A subscript that neither the left side nor a reduction introduces."""

    code: ClassVar[str] = "KG0401"
    rule: ClassVar[str] = (
        "An index on the right is on the left too, or a reduction introduces it."
    )
    says: ClassVar[str] = (
        "The index '{name}' is neither on the left nor in the brackets of a reduction."
    )
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class IndexRebound(WordedBeside):
    """An index bound again inside its own scope."""

    code: ClassVar[str] = "KG0402"
    rule: ClassVar[str] = "An index is introduced once in its scope."
    says: ClassVar[str] = "The index '{name}' is introduced already."
    points: ClassVar[str] = "introduced again here"
    beside: ClassVar[str] = "introduced here"
    advice: ClassVar[str] = "Give the inner index another name."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class RangeNotFound(Worded):
    """Indices of one `let` or reduction that subscript nothing by themselves."""

    code: ClassVar[str] = "KG0403"
    rule: ClassVar[str] = (
        "An index ranges over the first axis that it subscripts by itself."
    )
    says: ClassVar[str] = "{which} can't be inferred."
    points: ClassVar[str] = "it subscripts no axis by itself"
    advice: ClassVar[str] = (
        "Use an index as a subscript by itself, or give the range where it is "
        "introduced: '{ranges}'."
    )

    names: tuple[str, ...]
    lengths: tuple[str, ...]

    @property
    def which(self) -> str:
        """The ranges in words."""
        *first, last = (f"'{name}'" for name in self.names)
        if not first:
            return f"The range of the index {last}"
        return f"The ranges of the indices {', '.join(first)} and {last}"

    @property
    def ranges(self) -> str:
        """How they are introduced."""
        pairs = zip(self.names, self.lengths, strict=True)
        return ", ".join(f"{name} < {length}" for name, length in pairs)


@final
@dataclass(frozen=True, kw_only=True)
class DimMismatch(WordedBeside):
    """An index that subscripts axes of two different dims."""

    code: ClassVar[str] = "KG0404"
    rule: ClassVar[str] = "All axes that an index subscripts have the same dim."
    says: ClassVar[str] = (
        "The index '{index}' ranges over '{dim}', but axis {axis} of '{tensor}' is "
        "'{other_dim}'."
    )
    points: ClassVar[str] = "this axis is '{other_dim}'"
    beside: ClassVar[str] = "'{index}' ranges over '{dim}' because of this"
    advice: ClassVar[str] = "{remedy}"

    index: str
    dim: str
    axis: int
    tensor: str
    other_dim: str
    declared: Span | None = None
    remedy: str = (
        "Check the order of the subscripts; if the two lengths are always equal, use "
        "one dim for both."
    )

    @property
    def related(self) -> tuple[Related, ...]:
        """What gave the index its range, and where the axis is declared."""
        label = f"axis {self.axis} of '{self.tensor}' is '{self.other_dim}' here"
        axis = (Related(self.declared, label),) if self.declared else ()
        return (*super().related, *axis)


@final
@dataclass(frozen=True, kw_only=True)
class RangeTooLong(WordedBeside):
    """An index whose literal range exceeds a literal axis."""

    code: ClassVar[str] = "KG0405"
    rule: ClassVar[str] = "The range of an index fits every axis that it subscripts."
    says: ClassVar[str] = (
        "The index '{index}' runs to {end}, but axis {axis} of '{tensor}' has only "
        "{available}."
    )
    points: ClassVar[str] = "this axis has {available}"
    beside: ClassVar[str] = "'{index}' runs to {end} because of this"
    advice: ClassVar[str] = "{remedy}"

    index: str
    length: int | str
    axis: int
    tensor: str
    available: int
    declared: Span | None = None

    @property
    def end(self) -> str:
        """The length that the index ranges over."""
        return str(self.length) if isinstance(self.length, int) else f"'{self.length}'"

    @property
    def remedy(self) -> str:
        """What to write instead."""
        if self.available == 1:
            return "An axis of length 1 is not broadcast: subscript it with '0'."
        last = f"min({self.index}, {self.available - 1})"
        return f"Check the order of the subscripts, or subscript with '{last}'."

    @property
    def related(self) -> tuple[Related, ...]:
        """What gave the index its range, and where the axis is declared."""
        label = f"axis {self.axis} of '{self.tensor}' has {self.available} here"
        axis = (Related(self.declared, label),) if self.declared else ()
        return (*super().related, *axis)


@final
@dataclass(frozen=True, kw_only=True)
class SubscriptCount(WordedBeside):
    """Too few or too many subscripts."""

    code: ClassVar[str] = "KG0406"
    rule: ClassVar[str] = "A tensor has one subscript per axis."
    says: ClassVar[str] = "'{tensor}' has {axes}, but {given}."
    beside: ClassVar[str] = "'{tensor}' is declared here"
    advice: ClassVar[str] = "Write '{example}'."

    tensor: str
    rank: int
    count: int
    example: str

    @property
    def axes(self) -> str:
        """The rank in words."""
        return counted(self.rank, "axis", "axes") if self.rank else "no axes"

    @property
    def given(self) -> str:
        """The number of subscripts in words."""
        verb = "is" if self.count == 1 else "are"
        number = counted(self.count, "subscript") if self.count else "no subscripts"
        return f"{number} {verb} given"


@final
@dataclass(frozen=True, kw_only=True)
class SubscriptType(Worded):
    """A subscript that is no integer."""

    code: ClassVar[str] = "KG0407"
    rule: ClassVar[str] = "A subscript is an integer."
    says: ClassVar[str] = "A subscript is 'i32' or 'u32', but this is '{actual}'."
    points: ClassVar[str] = "'{actual}'"
    advice: ClassVar[str] = "{remedy}"

    actual: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class NotSubscriptable(WordedNear):
    """A subscript on something that is no tensor."""

    code: ClassVar[str] = "KG0408"
    rule: ClassVar[str] = "Only tensors and lets are subscripted."
    says: ClassVar[str] = "'{text}' can't be subscripted: it is {kind}."
    nearby: ClassVar[str] = "'{text}' is declared here"
    advice: ClassVar[str] = "{remedy}"

    text: str
    kind: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class DimAsIndex(WordedNear):
    """A dim where an index was meant."""

    code: ClassVar[str] = "KG0409"
    rule: ClassVar[str] = "A dim is a length; an index has a name of its own."
    says: ClassVar[str] = "'{name}' is a dim, not an index."
    nearby: ClassVar[str] = "the length of this axis"
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str = "Give the index a name that is not a dim, such as 'i' or 'p'."


@final
@dataclass(frozen=True, kw_only=True)
class OutputOnlyDim(Worded):
    """A dim that no input has."""

    code: ClassVar[str] = "KG0410"
    rule: ClassVar[str] = "The dims of outputs are dims of inputs, or literals."
    says: ClassVar[str] = "The dim '{name}' of an output is not a dim of any input."
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class AxisForm(Worded):
    """An axis of an input that is neither a name nor a positive literal."""

    code: ClassVar[str] = "KG0411"
    rule: ClassVar[str] = "An input's axis is a name or a literal of at least 1."
    says: ClassVar[str] = "An axis is a name or a whole number from 1 to 2147483647."
    advice: ClassVar[str] = "{remedy}"

    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class IndexAsValue(WordedNear):
    """An unknown name in an equation that looks like an index."""

    code: ClassVar[str] = "KG0412"
    rule: ClassVar[str] = "An index exists only in its statement or reduction."
    says: ClassVar[str] = "The index '{name}' is not in scope here."
    nearby: ClassVar[str] = "'{name}' is introduced here"
    advice: ClassVar[str] = (
        "An index exists only in the statement or reduction that introduces it. A "
        "reduction ends at '/', '%', '+', '-' and comparisons: put its body in "
        "parentheses."
    )

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class LengthReads(WordedNear):
    """A length that depends on what only the device knows."""

    code: ClassVar[str] = "KG0413"
    rule: ClassVar[str] = "Lengths are computed from dims, scalars and constants."
    says: ClassVar[str] = "{place} can't depend on {what}."
    nearby: ClassVar[str] = "declared here"
    advice: ClassVar[str] = "{remedy}"

    place: str
    what: str
    remedy: str = (
        "The host computes it before the kernel runs, from dims ('n' in 'x: f32[n]'), "
        "integer scalars, constants and hosts."
    )


@final
@dataclass(frozen=True, kw_only=True)
class LengthType(Worded):
    """A length that is no integer."""

    code: ClassVar[str] = "KG0414"
    rule: ClassVar[str] = "Lengths are integers."
    says: ClassVar[str] = "{place} is an integer, but this is '{actual}'."
    advice: ClassVar[str] = "Use integers only; '/' of integers truncates."

    place: str
    actual: str


@final
@dataclass(frozen=True, kw_only=True)
class LengthValue(Worded):
    """A length that no axis and no range can have."""

    code: ClassVar[str] = "KG0415"
    rule: ClassVar[str] = "Lengths are from 0 to 2147483647."
    says: ClassVar[str] = "{place} is from 0 to 2147483647, but this is {value}."
    advice: ClassVar[str] = "Write a length that an axis can have."

    place: str
    value: int


@final
@dataclass(frozen=True, kw_only=True)
class SubscriptOutside(Worded):
    """A subscript that surely lies outside of its axis."""

    code: ClassVar[str] = "KG0416"
    rule: ClassVar[str] = "Subscripts stay inside their axis."
    says: ClassVar[str] = (
        "The subscript '{text}' {reaches} outside of axis {axis} of '{tensor}'."
    )
    points: ClassVar[str] = "the axis has length {length}"
    advice: ClassVar[str] = "{remedy}"

    text: str
    reaches: str
    axis: int
    tensor: str
    length: str
    remedy: str


FLOORED: Final = {operator: name for name, operator in TRUNCATING.items()}
"""The built-in that rounds down where an operator rounds toward 0."""


@final
@dataclass(frozen=True, kw_only=True)
class PlaceOfSeveral(Worded):
    """`argmax[i, j] x[i, j]`."""

    code: ClassVar[str] = "KG0418"
    rule: ClassVar[str] = "'argmax' and 'argmin' are over one index."
    says: ClassVar[str] = (
        "'{kind}' returns the value of one index, but this has {count}: {listed}."
    )
    advice: ClassVar[str] = (
        "Name the best of each row first, 'let best[{first}] = {of}[{last}] ...;', then "
        "write '{kind}[{first}] best[{first}]'."
    )

    kind: str
    names: tuple[str, ...]
    of: str

    @property
    def count(self) -> int:
        """How many indices there are."""
        return len(self.names)

    @property
    def listed(self) -> str:
        """All indices."""
        return ", ".join(f"'{name}'" for name in self.names)

    @property
    def first(self) -> str:
        """The index of which the place is found first."""
        return self.names[0]

    @property
    def last(self) -> str:
        """The other indices."""
        return ", ".join(self.names[1:])


@final
@dataclass(frozen=True, kw_only=True)
class NegativeDividend(Worded):
    """A quotient or remainder in a subscript, of an integer that can be negative."""

    code: ClassVar[str] = "KG0417"
    rule: ClassVar[str] = (
        "What a subscript divides by '/' or '%' is not negative anywhere."
    )
    severity: ClassVar[Literal["error", "warning"]] = "warning"
    says: ClassVar[str] = (
        "'{operator}' rounds toward 0, and what it divides can be negative."
    )
    points: ClassVar[str] = "of -1 and 3, '/' is 0 and '%' is -1"
    advice: ClassVar[str] = "{quotient} rounds down, as Python does."

    operator: Literal["/", "%"]
    left: str
    right: str
    within: str = ""

    @property
    def quotient(self) -> str:
        """What to write, and in which function, if the subscript calls one."""
        form = f"'{self.function}({self.left}, {self.right})'"
        return f"In '{self.within}', {form}" if self.within else form

    @property
    def function(self) -> str:
        """The built-in that rounds down."""
        return FLOORED[self.operator]
