"""Diagnostics of structs: codes KG08xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class NoFields(Diagnostic):
    """A struct without fields: `struct P {}`."""

    CODE = "KG0801"
    MESSAGE = "The struct '{name}' has no fields."
    HELP = "Give it one, such as 'mass: f32'."
    name: str


class DuplicateField(Diagnostic):
    CODE = "KG0802"
    MESSAGE = "The struct '{struct}' has two fields called '{name}'."
    HELP = "Rename one of them."
    RELATED = {"other": "the first one"}
    other: Span
    struct: str
    name: str


class StructNamedLikeType(Diagnostic):
    """A struct with the name of a type: `struct vec3f { ... }`."""

    CODE = "KG0803"
    MESSAGE = "'{name}' is a type of the language."
    HELP = "Call the struct something else."
    name: str


class HoldsItself(Diagnostic):
    CODE = "KG0804"
    MESSAGE = "The struct '{name}' holds itself: {chain}."
    HELP = (
        "A struct contains its fields. To refer to another element of a tensor, store "
        "its index: '{field}: u32'."
    )
    RELATED = {"others": "holds '{here}' here"}
    name: str
    chain: str
    field: str
    others: tuple[Span, ...] = ()


class NumberNotConstant(Diagnostic):
    CODE = "KG0805"
    MESSAGE = "{place} is a constant, but {what}."
    HELP = "{remedy}"
    place: str
    what: str
    remedy: str


class LengthNotPositive(Diagnostic):
    """A fixed array of length 0 or less: `trail: f32[0]`."""

    CODE = "KG0806"
    MESSAGE = (
        "An array in a struct has at least one element, but this length is {value}."
    )
    HELP = "Write how many elements it has, as in 'trail: f32[4]'."
    value: int


class NotAnInteger(Diagnostic):
    CODE = "KG0807"
    MESSAGE = "{place} is an integer, but this is '{actual}'."
    LABEL = "'{actual}'"
    HELP = "Write a whole number, or a constant of type 'u32'."
    place: str
    actual: str


class UnknownAttribute(Diagnostic):
    """An attribute that does not exist: `@offset(16)`."""

    CODE = "KG0808"
    MESSAGE = "Unknown attribute '@{name}'."
    HELP = (
        "Did you mean '@{suggestion}'?",
        (
            "Fields have '@align(n)', to start at a multiple of n bytes, and '@size(n)', "
            "to reserve n bytes."
        ),
    )
    name: str
    suggestion: str


class AttributeTwice(Diagnostic):
    """An attribute given twice: `@size(16) @size(32) a: f32`."""

    CODE = "KG0809"
    MESSAGE = "The field '{field}' has '@{name}' twice."
    HELP = "Keep one of them."
    RELATED = {"other": "the first one"}
    other: Span
    field: str
    name: str


class AlignNotPowerOfTwo(Diagnostic):
    """An alignment that is no power of two: `@align(12)`."""

    CODE = "KG0810"
    MESSAGE = "'@align' takes a power of two, but {value} is not one."
    HELP = "{remedy}"
    value: int

    @property
    def remedy(self) -> str:
        """The next power of two, if there is one."""
        if self.value < 1:
            return "Write how many bytes, as in '@align(16)'."
        return f"Write '@align({1 << (self.value - 1).bit_length()})'."


class AlignTooSmall(Diagnostic):
    """An alignment below that of the type: `@align(4) pos: vec3f`."""

    CODE = "KG0811"
    MESSAGE = (
        "'{type}' starts at a multiple of {natural} bytes, which '@align({value})' "
        "can't lower."
    )
    HELP = "Leave it out. To keep the numbers closer together, use an array of scalars."
    type: str
    natural: int
    value: int


class SizeTooSmall(Diagnostic):
    """A size below that of the type: `@size(8) pos: vec3f`."""

    CODE = "KG0812"
    MESSAGE = (
        "'{type}' takes {natural} bytes, more than the {value} of '@size({value})'."
    )
    HELP = "Write '@size({natural})' or more, or leave it out."
    type: str
    natural: int
    value: int


class StructTooDeep(Diagnostic):
    CODE = "KG0813"
    MESSAGE = (
        "Structs and arrays in {what} are nested {depth} deep; the limit is {limit}."
    )
    HELP = "Move the fields of an inner struct into the outer one."
    what: str
    depth: int
    limit: int


class TooManyFields(Diagnostic):
    CODE = "KG0814"
    MESSAGE = (
        "The struct '{name}' has {count} fields{within}, and the limit is {limit}."
    )
    HELP = "Put fields of one type into an array."
    name: str
    within: str
    count: int
    limit: int


class StructTooLarge(Diagnostic):
    CODE = "KG0815"
    MESSAGE = "The struct '{name}' takes {size} bytes, and the limit is {limit}."
    LABEL = "this field exceeds the limit"
    HELP = "Pass the large part as a tensor of its own."
    name: str
    size: int
    limit: int


class SizeInUniform(Diagnostic):
    """A struct as a parameter whose `@size` is too small for a uniform buffer."""

    CODE = "KG0816"
    MESSAGE = (
        "As a parameter, '{struct}' is kept in a uniform buffer, where its field "
        "'{field}' takes {needed} bytes, more than the {value} of '@size({value})'."
    )
    HELP = "{remedy}"
    RELATED = {"declared": "this field"}
    struct: str
    field: str
    needed: int
    value: int
    declared: Span | None

    @property
    def remedy(self) -> str:
        """The correction to write."""
        return (
            f"Write '@size({self.needed})' or more, or pass a tensor of one element: "
            f"'{self.struct}[1]'."
        )


class UniformTooLarge(Diagnostic):
    CODE = "KG0817"
    MESSAGE = (
        "The parameters of '{name}' take {size} bytes, and a uniform buffer holds "
        "{limit}."
    )
    HELP = "Pass the large parts as tensors."
    name: str
    size: int
    limit: int


class UniformTooDeep(Diagnostic):
    CODE = "KG0818"
    MESSAGE = (
        "As a parameter, '{struct}' is nested {depth} deep in a uniform buffer, and "
        "the limit is {limit}."
    )
    HELP = "Pass a tensor of one element, '{struct}[1]', or nest fewer types."
    struct: str
    depth: int
    limit: int


class TooMuchCopied(Diagnostic):
    CODE = "KG0819"
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
