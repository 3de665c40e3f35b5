"""Diagnostics of structs: codes KG08xx."""

from __future__ import annotations

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
