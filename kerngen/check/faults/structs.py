"""What can be wrong with structs: codes KG08xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class NoFields(
    Diagnostic,
    code="KG0801",
    message="The struct '{name}' has no fields.",
    help="Give it one, such as 'mass: f32'.",
):
    """`struct P {}`."""

    name: str


class DuplicateField(
    Diagnostic,
    code="KG0802",
    message="The struct '{struct}' has two fields called '{name}'.",
    help="Rename one of them.",
    related={"other": "the first one"},
):
    other: Span
    struct: str
    name: str


class StructNamedLikeType(
    Diagnostic,
    code="KG0803",
    message="'{name}' is a type of the language.",
    help="Call the struct something else.",
):
    """`struct vec3f { ... }`."""

    name: str


class HoldsItself(
    Diagnostic,
    code="KG0804",
    message="The struct '{name}' holds itself: {chain}.",
    help=(
        "A struct contains its fields. To refer to another element of a tensor, store "
        "its index: '{field}: u32'."
    ),
    related={"others": "holds '{here}' here"},
):
    name: str
    chain: str
    field: str
    others: tuple[Span, ...] = ()


class NumberNotConstant(
    Diagnostic,
    code="KG0805",
    message="{place} is a constant, but {what}.",
    help="{remedy}",
):
    place: str
    what: str
    remedy: str


class LengthNotPositive(
    Diagnostic,
    code="KG0806",
    message=(
        "An array in a struct has at least one element, but this length is {value}."
    ),
    help="Write how many elements it has, as in 'trail: f32[4]'.",
):
    """`trail: f32[0]`."""

    value: int


class NotAnInteger(
    Diagnostic,
    code="KG0807",
    message="{place} is an integer, but this is '{actual}'.",
    label="'{actual}'",
    help="Write a whole number, or a constant of type 'u32'.",
):
    place: str
    actual: str


class UnknownAttribute(
    Diagnostic,
    code="KG0808",
    message="Unknown attribute '@{name}'.",
    help=(
        "Did you mean '@{suggestion}'?",
        (
            "Fields have '@align(n)', to start at a multiple of n bytes, and '@size(n)', "
            "to reserve n bytes."
        ),
    ),
):
    """`@offset(16)`."""

    name: str
    suggestion: str


class AttributeTwice(
    Diagnostic,
    code="KG0809",
    message="The field '{field}' has '@{name}' twice.",
    help="Keep one of them.",
    related={"other": "the first one"},
):
    """`@size(16) @size(32) a: f32`."""

    other: Span
    field: str
    name: str


class AlignNotPowerOfTwo(
    Diagnostic,
    code="KG0810",
    message="'@align' takes a power of two, but {value} is not one.",
    help="{remedy}",
):
    """`@align(12)`."""

    value: int

    @property
    def remedy(self) -> str:
        """The next power of two, if there is one."""
        if self.value < 1:
            return "Write how many bytes, as in '@align(16)'."
        return f"Write '@align({1 << (self.value - 1).bit_length()})'."


class AlignTooSmall(
    Diagnostic,
    code="KG0811",
    message=(
        "'{type}' starts at a multiple of {natural} bytes, which '@align({value})' "
        "can't lower."
    ),
    help="Leave it out. To keep the numbers closer together, use an array of scalars.",
):
    """`@align(4) pos: vec3f`."""

    type: str
    natural: int
    value: int


class SizeTooSmall(
    Diagnostic,
    code="KG0812",
    message=(
        "'{type}' takes {natural} bytes, more than the {value} of '@size({value})'."
    ),
    help="Write '@size({natural})' or more, or leave it out.",
):
    """`@size(8) pos: vec3f`."""

    type: str
    natural: int
    value: int


class StructTooDeep(
    Diagnostic,
    code="KG0813",
    message=(
        "Structs and arrays in {what} are nested {depth} deep; the limit is {limit}."
    ),
    help="Move the fields of an inner struct into the outer one.",
):
    what: str
    depth: int
    limit: int


class TooManyFields(
    Diagnostic,
    code="KG0814",
    message="The struct '{name}' has {count} fields{within}, and the limit is {limit}.",
    help="Put fields of one type into an array.",
):
    name: str
    within: str
    count: int
    limit: int


class StructTooLarge(
    Diagnostic,
    code="KG0815",
    message="The struct '{name}' takes {size} bytes, and the limit is {limit}.",
    label="this field exceeds the limit",
    help="Pass the large part as a tensor of its own.",
):
    name: str
    size: int
    limit: int


class SizeInUniform(
    Diagnostic,
    code="KG0816",
    message=(
        "As a parameter, '{struct}' is kept in a uniform buffer, where its field "
        "'{field}' takes {needed} bytes, more than the {value} of '@size({value})'."
    ),
    help="{remedy}",
    related={"declared": "this field"},
):
    """A struct as a parameter whose `@size` is too small for a uniform buffer."""

    struct: str
    field: str
    needed: int
    value: int
    declared: Span | None

    @property
    def remedy(self) -> str:
        """What to do."""
        return (
            f"Write '@size({self.needed})' or more, or pass a tensor of one element: "
            f"'{self.struct}[1]'."
        )


class UniformTooLarge(
    Diagnostic,
    code="KG0817",
    message=(
        "The parameters of '{name}' take {size} bytes, and a uniform buffer holds "
        "{limit}."
    ),
    help="Pass the large parts as tensors.",
):
    name: str
    size: int
    limit: int


class UniformTooDeep(
    Diagnostic,
    code="KG0818",
    message=(
        "As a parameter, '{struct}' is nested {depth} deep in a uniform buffer, and "
        "the limit is {limit}."
    ),
    help="Pass a tensor of one element, '{struct}[1]', or nest fewer types.",
):
    struct: str
    depth: int
    limit: int


class TooMuchCopied(
    Diagnostic,
    code="KG0819",
    message=(
        "With this copy, the copies in this file move {count} values, and the limit is "
        "{limit}."
    ),
    help=(
        "Each value is a statement of a shader. Put fields of one type into an array, "
        "which counts as one element, or move kernels to another file."
    ),
):
    count: int
    limit: int
