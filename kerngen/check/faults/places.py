"""Diagnostics of structs, vectors and matrices in expressions: codes KG11xx."""

from __future__ import annotations

from typing import Literal, TypeAlias

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class StructAsValue(Diagnostic, code="KG1101"):
    MESSAGE = "'{text}' is a whole '{type}': only its parts are values."
    HELP = "Take a member: '{text}.{member}'."
    type: str
    member: str


class ArrayAsValue(Diagnostic, code="KG1102"):
    MESSAGE = "'{text}' is a whole '{type}': only its parts are values."
    HELP = "Take an element: '{text}[{indices}]'."
    type: str
    indices: str


class UnknownField(Diagnostic, code="KG1103"):
    MESSAGE = "'{struct}' has no member '{text}'."
    HELP = ("Did you mean '{suggestion}'?", "It has {fields}.")
    declared: Span | None = related("'{struct}' is declared here", default=None)
    struct: str
    fields: tuple[str, ...]
    suggestion: str


class ConstructParts(Diagnostic, code="KG1104"):
    MESSAGE = "'{type}' can't be made of ({actual})."
    HELP = "It takes {accepted}."
    type: str
    actual: str
    accepted: str


class StructConstructed(Diagnostic, code="KG1105"):
    MESSAGE = "'{struct}' is a struct, which can't be constructed in an expression."
    HELP = "Write its members: '{target}[...].{member} = ...;'."
    struct: str
    target: str
    member: str


class CompositeOperands(Diagnostic, code="KG1106"):
    MESSAGE = "'{op}' is not defined for '{left}' and '{right}'."
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


class TargetPart(Diagnostic, code="KG1107"):
    MESSAGE = "'{target}' can't be written."
    HELP = {
        "update": "A whole '{type}' can only be copied, with '='.",
        "copy": (
            "'{value}' is not a whole '{type}', so it can't be copied; write the parts: "
            "'{part} = ...;'."
        ),
        "component": "A component has no members.",
        "components": "Write one component at a time, or the whole vector.",
        "letters": "'{type}' has the components {listed}.",
        "whole": "'{type}' is written as a whole.",
        "axes": "It has {length:axis/axes}.",
        "subscripted": "A component is written by its letter: '.x = ...'.",
        "subscript": (
            "Use an index of its own, which ranges over all {length} elements, or a "
            "literal from 0 to {last}."
        ),
    }
    case: TargetCase
    target: str
    type: str
    value: str = ""
    part: str = ""
    listed: tuple[str, ...] = ()
    length: int = 0

    @property
    def last(self) -> int:
        """The greatest literal that is a valid subscript."""
        return self.length - 1


class NoDefault(Diagnostic, code="KG1109"):
    MESSAGE = "A parameter of type '{type}' has no default."
    HELP = "Leave it out; callers pass the value."
    type: str


class MembersNeverWritten(Diagnostic, code="KG1108"):
    MESSAGE = "{listed} of '{text}' {are} never written."
    HELP = "Add a statement '{text}[...]{first} = ...;'."
    missing: tuple[str, ...]

    @property
    def listed(self) -> str:
        """The unwritten members, the first few of them."""
        shown = [f"'{part}'" for part in self.missing[:4]]
        rest = len(self.missing) - len(shown)
        return ", ".join(shown) + (f" and {rest} more" if rest else "")

    @property
    def are(self) -> str:
        """The verb: "is" or "are", by their number."""
        return "is" if len(self.missing) == 1 else "are"

    @property
    def first(self) -> str:
        """The first unwritten member."""
        return self.missing[0]
