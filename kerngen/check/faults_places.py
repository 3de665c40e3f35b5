"""Faults of structs, vectors and matrices in expressions: codes KG11xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.similar import did_you_mean
from kerngen.source.worded import Worded, WordedNear


@final
@dataclass(frozen=True, kw_only=True)
class StructAsValue(Worded):
    """`y[i] = p[i];` of structs."""

    code: ClassVar[str] = "KG1101"
    rule: ClassVar[str] = "A struct is read and written member by member."
    says: ClassVar[str] = "'{text}' is a whole '{type}': only its parts are values."
    advice: ClassVar[str] = "Take a member: '{text}.{member}'."

    text: str
    type: str
    member: str


@final
@dataclass(frozen=True, kw_only=True)
class ArrayAsValue(Worded):
    """`p[i].trail`, an array."""

    code: ClassVar[str] = "KG1102"
    rule: ClassVar[str] = "An array in a struct is read and written by its elements."
    says: ClassVar[str] = "'{text}' is a whole '{type}': only its parts are values."
    advice: ClassVar[str] = "Take an element: '{text}[{indices}]'."

    text: str
    type: str
    indices: str


@final
@dataclass(frozen=True, kw_only=True)
class UnknownField(WordedNear):
    """A member that the struct does not have."""

    code: ClassVar[str] = "KG1103"
    rule: ClassVar[str] = "A member of a struct is one that it declares."
    says: ClassVar[str] = "'{struct}' has no member '{field}'."
    nearby: ClassVar[str] = "'{struct}' is declared here"
    advice: ClassVar[str] = "{meant}"

    struct: str
    field: str
    fields: str
    suggestion: str

    @property
    def meant(self) -> str:
        """What may be meant."""
        return did_you_mean(self.suggestion) or f"It has {self.fields}."


@final
@dataclass(frozen=True, kw_only=True)
class ConstructParts(Worded):
    """`vec3f(1.0, 2.0)`."""

    code: ClassVar[str] = "KG1104"
    rule: ClassVar[str] = (
        "A vector is made of as many components as it has, or of one for all; a matrix "
        "of its columns."
    )
    says: ClassVar[str] = "'{type}' can't be made of ({actual})."
    advice: ClassVar[str] = "It takes {accepted}."

    type: str
    actual: str
    accepted: str


@final
@dataclass(frozen=True, kw_only=True)
class StructConstructed(Worded):
    """`Particle(...)`."""

    code: ClassVar[str] = "KG1105"
    rule: ClassVar[str] = "A struct is read and written member by member."
    says: ClassVar[str] = (
        "'{struct}' is a struct, which can't be constructed in an expression."
    )
    advice: ClassVar[str] = "Write its members: '{target}[...].{member} = ...;'."

    struct: str
    target: str
    member: str


@final
@dataclass(frozen=True, kw_only=True)
class CompositeOperands(Worded):
    """`a + b` of a vec2f and a vec3f."""

    code: ClassVar[str] = "KG1106"
    rule: ClassVar[str] = (
        "Operators combine vectors of one type, or a vector and a scalar of its type, "
        "by component; matrices are added, scaled and multiplied."
    )
    says: ClassVar[str] = "'{op}' is not defined for '{left}' and '{right}'."
    advice: ClassVar[str] = "{remedy}"

    op: str
    left: str
    right: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class TargetPart(Worded):
    """A target inside of an element that can't be written by itself."""

    code: ClassVar[str] = "KG1107"
    rule: ClassVar[str] = (
        "A statement writes an element, a member, or one component of a vector."
    )
    says: ClassVar[str] = "'{text}' can't be written."
    advice: ClassVar[str] = "{remedy}"

    text: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class NoDefault(Worded):
    """A default of a matrix or a struct."""

    code: ClassVar[str] = "KG1109"
    rule: ClassVar[str] = "Scalars and vectors may have a default."
    says: ClassVar[str] = "A parameter of type '{type}' has no default."
    advice: ClassVar[str] = "Leave it out; callers pass the value."

    type: str


@final
@dataclass(frozen=True, kw_only=True)
class MembersNeverWritten(Worded):
    """An output of structs of which some members are never written."""

    code: ClassVar[str] = "KG1108"
    rule: ClassVar[str] = "A kernel writes every member of an output's elements."
    says: ClassVar[str] = "{listed} of '{name}' {are} never written."
    advice: ClassVar[str] = "Add a statement '{name}[...]{first} = ...;'."

    name: str
    missing: tuple[str, ...]

    @property
    def listed(self) -> str:
        """The members, the first few of them."""
        shown = [f"'{part}'" for part in self.missing[:4]]
        rest = len(self.missing) - len(shown)
        return ", ".join(shown) + (f" and {rest} more" if rest else "")

    @property
    def are(self) -> str:
        """The verb that fits their number."""
        return "is" if len(self.missing) == 1 else "are"

    @property
    def first(self) -> str:
        """The first member."""
        return self.missing[0]
