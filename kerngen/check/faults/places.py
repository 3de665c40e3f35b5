"""Faults of structs, vectors and matrices in expressions: codes KG11xx."""

from __future__ import annotations

from typing import Literal, TypeAlias

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class StructAsValue(
    Diagnostic,
    code="KG1101",
    message="'{text}' is a whole '{type}': only its parts are values.",
    help="Take a member: '{text}.{member}'.",
):
    """`y[i] = p[i];` of structs."""

    text: str
    type: str
    member: str


class ArrayAsValue(
    Diagnostic,
    code="KG1102",
    message="'{text}' is a whole '{type}': only its parts are values.",
    help="Take an element: '{text}[{indices}]'.",
):
    """`p[i].trail`, an array."""

    text: str
    type: str
    indices: str


class UnknownField(
    Diagnostic,
    code="KG1103",
    message="'{struct}' has no member '{field}'.",
    help=("Did you mean '{suggestion}'?", "It has {fields}."),
    related={"declared": "'{struct}' is declared here"},
):
    declared: Span | None = None
    struct: str
    field: str
    fields: str
    suggestion: str


class ConstructParts(
    Diagnostic,
    code="KG1104",
    message="'{type}' can't be made of ({actual}).",
    help="It takes {accepted}.",
):
    """`vec3f(1.0, 2.0)`."""

    type: str
    actual: str
    accepted: str


class StructConstructed(
    Diagnostic,
    code="KG1105",
    message="'{struct}' is a struct, which can't be constructed in an expression.",
    help="Write its members: '{target}[...].{member} = ...;'.",
):
    """`Particle(...)`."""

    struct: str
    target: str
    member: str


class CompositeOperands(
    Diagnostic,
    code="KG1106",
    message="'{op}' is not defined for '{left}' and '{right}'.",
    help="{remedy}",
):
    """`a + b` of a vec2f and a vec3f."""

    op: str
    left: str
    right: str
    remedy: str


TargetCase: TypeAlias = Literal[
    "update",
    "copy",
    "component",
    "components",
    "letters",
    "whole",
    "axes",
    "subscripted",
    "subscript",
]
"""What is wrong with a part that a statement writes."""


class TargetPart(
    Diagnostic,
    code="KG1107",
    message="'{text}' can't be written.",
    help={
        "update": "A whole '{type}' can only be copied, with '='.",
        "copy": (
            "'{value}' is not a whole '{type}', so it can't be copied; write the parts: "
            "'{part} = ...;'."
        ),
        "component": "A component has no members.",
        "components": "Write one component at a time, or the whole vector.",
        "letters": "'{type}' has the components {listed}.",
        "whole": "'{type}' is written as a whole.",
        "axes": "It has {listed}.",
        "subscripted": "A component is written by its letter: '.x = ...'.",
        "subscript": (
            "Use an index of its own, which ranges over all {length} elements, or a "
            "literal from 0 to {last}."
        ),
    },
):
    case: TargetCase
    text: str
    type: str
    value: str = ""
    part: str = ""
    listed: str = ""
    length: int = 0

    @property
    def last(self) -> int:
        """The last literal that is a subscript."""
        return self.length - 1


class NoDefault(
    Diagnostic,
    code="KG1109",
    message="A parameter of type '{type}' has no default.",
    help="Leave it out; callers pass the value.",
):
    type: str


class MembersNeverWritten(
    Diagnostic,
    code="KG1108",
    message="{listed} of '{name}' {are} never written.",
    help="Add a statement '{name}[...]{first} = ...;'.",
):
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
