"""What can be wrong with lets that read themselves: codes KG13xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.worded import Worded, WordedBeside, WordedNear


@final
@dataclass(frozen=True, kw_only=True)
class ReadsItself(Worded):
    """A let that reads the very element that it defines."""

    code: ClassVar[str] = "KG1301"
    rule: ClassVar[str] = "A let reads itself at other values of one index."
    says: ClassVar[str] = "'{text}' is what is being defined here."
    advice: ClassVar[str] = (
        "Read '{name}' at an earlier or later value of one index, such as 't - 1'; "
        "or give the new values another name."
    )

    name: str
    text: str


@final
@dataclass(frozen=True, kw_only=True)
class BothDirections(WordedBeside):
    """A let that reads itself at earlier and at later values of an index."""

    code: ClassVar[str] = "KG1302"
    rule: ClassVar[str] = "A let reads itself in one direction."
    says: ClassVar[str] = (
        "'{name}' reads itself at earlier and at later values of '{index}'."
    )
    beside: ClassVar[str] = "earlier here"
    advice: ClassVar[str] = (
        "What comes first can't depend on what comes after it: read one side only, or "
        "make two lets, one for each direction."
    )

    name: str
    index: str


@final
@dataclass(frozen=True, kw_only=True)
class DistanceNotLiteral(Worded):
    """A let that reads itself at a distance that is known at the call, or later."""

    code: ClassVar[str] = "KG1303"
    rule: ClassVar[str] = "The distance at which a let reads itself is a literal."
    says: ClassVar[str] = "The distance at which '{name}' reads itself is no literal."
    advice: ClassVar[str] = (
        "Write a number or a constant, as in '{index} - 1': it decides in which order "
        "elements are computed, and how many are kept."
    )

    name: str
    index: str


@final
@dataclass(frozen=True, kw_only=True)
class UnguardedBorder(Worded):
    """A let that reads itself where there is no element, for all that is known."""

    code: ClassVar[str] = "KG1304"
    rule: ClassVar[str] = (
        "A let reads itself under a condition that leaves out the border."
    )
    says: ClassVar[str] = (
        "Nothing excludes the {border} values of '{index}', where '{read}' is outside."
    )
    advice: ClassVar[str] = (
        "Read it in a branch of its own: 'if {condition} {{ {read} }} else {{ ... }}'."
    )

    index: str
    border: str
    read: str
    condition: str


@final
@dataclass(frozen=True, kw_only=True)
class NoOrder(Worded):
    """A let whose reads of itself are earlier, or later, along no one index."""

    code: ClassVar[str] = "KG1305"
    rule: ClassVar[str] = (
        "There is an index along which all reads of a let itself are earlier."
    )
    says: ClassVar[str] = (
        "There is no index along which '{name}' reads only earlier values of itself: "
        "{reads}."
    )
    advice: ClassVar[str] = (
        "All of its reads must be at 't - 1', or some other literal, of the same index; "
        "of a table that is filled along two indices, compute a diagonal per step."
    )

    name: str
    reads: str


@final
@dataclass(frozen=True, kw_only=True)
class RecurrenceGradient(WordedNear):
    """The gradient of a recurrence whose steps depend on a reduction in other ways."""

    code: ClassVar[str] = "KG1306"
    rule: ClassVar[str] = (
        "Steps of recurrences with gradients are linear in reductions."
    )
    says: ClassVar[str] = (
        "A step of '{name}' in '{kernel}' is not linear in its reduction."
    )
    nearby: ClassVar[str] = "here"
    advice: ClassVar[str] = (
        "Write its gradient by hand: it is the recurrence in the other direction, "
        "'let d{name}[t] = if t + 1 < n {{ ... d{name}[t + 1] ... }} else {{ ... }};'."
    )

    kernel: str
    name: str
