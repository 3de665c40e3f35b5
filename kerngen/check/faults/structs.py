"""Diagnostics of structs, vectors and matrices: codes KG08xx and KG11xx."""

from __future__ import annotations

from typing import Literal, TypeAlias

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class NoFields(Diagnostic, code="KG0801"):
    MESSAGE = "The struct '{text}' has no fields."
    HELP = "Give it one, such as 'mass: f32'."


class DuplicateField(Diagnostic, code="KG0802"):
    MESSAGE = "The struct '{struct}' has two fields called '{text}'."
    HELP = "Rename one of them."
    other: Span = related("the first one")
    struct: str


class StructNamedLikeType(Diagnostic, code="KG0803"):
    MESSAGE = "'{text}' is a type of the language."
    HELP = "Call the struct something else."


class HoldsItself(Diagnostic, code="KG0804"):
    MESSAGE = "The struct '{name}' holds itself: {chain}."
    HELP = (
        "A struct contains its fields. To refer to another element of a tensor, store "
        "its index: '{field}: u32'."
    )
    name: str
    chain: str
    field: str
    others: tuple[Span, ...] = related("holds '{here}' here", default=())


class NumberNotConstant(Diagnostic, code="KG0805"):
    MESSAGE = "{place} is a constant, but {what}."
    place: str
    what: str
    remedy: str


class LengthNotPositive(Diagnostic, code="KG0806"):
    MESSAGE = (
        "An array in a struct has at least one element, but this length is {value}."
    )
    HELP = "Write how many elements it has, as in 'trail: f32[4]'."
    value: int


class NotAnInteger(Diagnostic, code="KG0807"):
    MESSAGE = "{place} is an integer, but this is '{actual}'."
    LABEL = "'{actual}'"
    HELP = "Write a whole number, or a constant of type 'u32'."
    place: str
    actual: str


class UnknownAttribute(Diagnostic, code="KG0808"):
    MESSAGE = "Unknown attribute '@{text}'."
    HELP = (
        "Did you mean '@{suggestion}'?",
        (
            "Fields have '@align(n)', to start at a multiple of n bytes, and '@size(n)', "
            "to reserve n bytes."
        ),
    )
    suggestion: str


class AttributeTwice(Diagnostic, code="KG0809"):
    MESSAGE = "The field '{field}' has '@{name}' twice."
    HELP = "Keep one of them."
    other: Span = related("the first one")
    field: str
    name: str


class AlignNotPowerOfTwo(Diagnostic, code="KG0810"):
    MESSAGE = "'@align' takes a power of two, but {value} is not one."
    value: int

    @property
    def help(self) -> str:
        """The next power of two, if there is one."""
        if self.value < 1:
            return "Write how many bytes, as in '@align(16)'."
        return f"Write '@align({1 << (self.value - 1).bit_length()})'."


class AlignTooSmall(Diagnostic, code="KG0811"):
    MESSAGE = (
        "'{type}' starts at a multiple of {natural} bytes, which '@align({value})' "
        "can't lower."
    )
    HELP = "Leave it out. To keep the numbers closer together, use an array of scalars."
    type: str
    natural: int
    value: int


class SizeTooSmall(Diagnostic, code="KG0812"):
    MESSAGE = (
        "'{type}' takes {natural} bytes, more than the {value} of '@size({value})'."
    )
    HELP = "Write '@size({natural})' or more, or leave it out."
    type: str
    natural: int
    value: int


class StructTooDeep(Diagnostic, code="KG0813"):
    MESSAGE = (
        "Structs and arrays in {what} are nested {depth} deep; the limit is {limit}."
    )
    HELP = "Move the fields of an inner struct into the outer one."
    what: str
    depth: int
    limit: int


class TooManyFields(Diagnostic, code="KG0814"):
    MESSAGE = (
        "The struct '{text}' has {count} fields{within}, and the limit is {limit}."
    )
    HELP = "Put fields of one type into an array."
    within: str
    count: int
    limit: int


class StructTooLarge(Diagnostic, code="KG0815"):
    MESSAGE = "The struct '{name}' takes {size} bytes, and the limit is {limit}."
    LABEL = "this field exceeds the limit"
    HELP = "Pass the large part as a tensor of its own."
    name: str
    size: int
    limit: int


class SizeInUniform(Diagnostic, code="KG0816"):
    MESSAGE = (
        "As a parameter, '{struct}' is kept in a uniform buffer, where its field "
        "'{field}' takes {needed} bytes, more than the {value} of '@size({value})'."
    )
    struct: str
    field: str
    needed: int
    value: int
    declared: Span | None = related("this field")

    @property
    def help(self) -> str:
        """The correction to write."""
        return (
            f"Write '@size({self.needed})' or more, or pass a tensor of one element: "
            f"'{self.struct}[1]'."
        )


class UniformTooLarge(Diagnostic, code="KG0817"):
    MESSAGE = (
        "The parameters of '{name}' take {size} bytes, and a uniform buffer holds "
        "{limit}."
    )
    HELP = "Pass the large parts as tensors."
    name: str
    size: int
    limit: int


class UniformTooDeep(Diagnostic, code="KG0818"):
    MESSAGE = (
        "As a parameter, '{text}' is nested {depth} deep in a uniform buffer, and "
        "the limit is {limit}."
    )
    HELP = "Pass a tensor of one element, '{text}[1]', or nest fewer types."
    depth: int
    limit: int


class TooMuchCopied(Diagnostic, code="KG0819"):
    MESSAGE = (
        "With this copy, the copies in this file move {count} values, and the limit is "
        "{limit}."
    )
    HELP = (
        "Each value is a statement of a shader. Put fields of one type into an array, "
        "which counts as one element, or move kernels to another file."
    )
    count: int
    limit: int


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
    "components",
    "whole",
    "subscripted",
    "subscript",
]
"""The fault of a part that a statement writes."""


class TargetPart(Diagnostic, code="KG1107"):
    MESSAGE = "'{target}' can't be written."
    HELP = {
        "update": "A whole '{type}' can only be copied, with '='.",
        "copy": (
            "'{value}' is not a whole '{type}', so it can't be copied; write the parts: "
            "'{part} = ...;'."
        ),
        "components": "Write one component at a time, or the whole vector.",
        "whole": "'{type}' is written as a whole.",
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
