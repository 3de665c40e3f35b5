"""What can be wrong with structs: codes KG08xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Related
from kerngen.source.text import Span
from kerngen.source.worded import Worded, WordedBeside


@final
@dataclass(frozen=True, kw_only=True)
class NoFields(Worded):
    """`struct P {}`."""

    code: ClassVar[str] = "KG0801"
    rule: ClassVar[str] = "A struct has at least one field."
    says: ClassVar[str] = "The struct '{name}' has no fields."
    advice: ClassVar[str] = "Give it one, such as 'mass: f32'."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class DuplicateField(WordedBeside):
    """Two fields of one name in a struct."""

    code: ClassVar[str] = "KG0802"
    rule: ClassVar[str] = "The fields of a struct have distinct names."
    says: ClassVar[str] = "The struct '{struct}' has two fields called '{name}'."
    beside: ClassVar[str] = "the first one"
    advice: ClassVar[str] = "Rename one of them."

    struct: str
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class StructNamedLikeType(Worded):
    """`struct vec3f { ... }`."""

    code: ClassVar[str] = "KG0803"
    rule: ClassVar[str] = "Structs and the language's own types have distinct names."
    says: ClassVar[str] = "'{name}' is a type of the language."
    advice: ClassVar[str] = "Call the struct something else."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class HoldsItself(Worded):
    """A struct with a field of its own type, directly or through others."""

    code: ClassVar[str] = "KG0804"
    rule: ClassVar[str] = "A struct does not hold itself."
    says: ClassVar[str] = "The struct '{name}' holds itself: {chain}."
    advice: ClassVar[str] = (
        "A struct contains its fields. To refer to another element of a tensor, store "
        "its index: '{field}: u32'."
    )

    name: str
    chain: str
    field: str
    others: tuple[Span, ...] = ()

    @property
    def related(self) -> tuple[Related, ...]:
        """The fields of the other structs in the circle."""
        return tuple(Related(span, f"holds '{span.text}' here") for span in self.others)


@final
@dataclass(frozen=True, kw_only=True)
class NumberNotConstant(Worded):
    """A length or an attribute that is not known when the program is compiled."""

    code: ClassVar[str] = "KG0805"
    rule: ClassVar[str] = "Lengths in structs and values of attributes are constants."
    says: ClassVar[str] = "{place} is a constant, but {what}."
    advice: ClassVar[str] = "{remedy}"

    place: str
    what: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class LengthNotPositive(Worded):
    """`trail: f32[0]`."""

    code: ClassVar[str] = "KG0806"
    rule: ClassVar[str] = "A fixed array has at least one element."
    says: ClassVar[str] = (
        "An array in a struct has at least one element, but this length is {value}."
    )
    advice: ClassVar[str] = "Write how many elements it has, as in 'trail: f32[4]'."

    value: int


@final
@dataclass(frozen=True, kw_only=True)
class NotAnInteger(Worded):
    """A length, or what an attribute takes, that is no integer."""

    code: ClassVar[str] = "KG0807"
    rule: ClassVar[str] = "Lengths in structs and values of attributes are integers."
    says: ClassVar[str] = "{place} is an integer, but this is '{actual}'."
    points: ClassVar[str] = "'{actual}'"
    advice: ClassVar[str] = "Write a whole number, or a constant of type 'u32'."

    place: str
    actual: str


@final
@dataclass(frozen=True, kw_only=True)
class UnknownAttribute(Worded):
    """`@offset(16)`."""

    code: ClassVar[str] = "KG0808"
    rule: ClassVar[str] = "The attributes of fields are '@align' and '@size'."
    says: ClassVar[str] = "Unknown attribute '@{name}'."
    advice: ClassVar[str] = "{remedy}"

    name: str
    suggestion: str

    @property
    def remedy(self) -> str:
        """What was meant, or what there is."""
        if self.suggestion:
            return f"Did you mean '@{self.suggestion}'?"
        return (
            "Fields have '@align(n)', to start at a multiple of n bytes, and "
            "'@size(n)', to reserve n bytes."
        )


@final
@dataclass(frozen=True, kw_only=True)
class AttributeTwice(WordedBeside):
    """`@size(16) @size(32) a: f32`."""

    code: ClassVar[str] = "KG0809"
    rule: ClassVar[str] = "A field has each attribute at most once."
    says: ClassVar[str] = "The field '{field}' has '@{name}' twice."
    beside: ClassVar[str] = "the first one"
    advice: ClassVar[str] = "Keep one of them."

    field: str
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class AlignNotPowerOfTwo(Worded):
    """`@align(12)`."""

    code: ClassVar[str] = "KG0810"
    rule: ClassVar[str] = "An alignment is a power of two."
    says: ClassVar[str] = "'@align' takes a power of two, but {value} is not one."
    advice: ClassVar[str] = "{remedy}"

    value: int

    @property
    def remedy(self) -> str:
        """The next power of two, if there is one."""
        if self.value < 1:
            return "Write how many bytes, as in '@align(16)'."
        return f"Write '@align({1 << (self.value - 1).bit_length()})'."


@final
@dataclass(frozen=True, kw_only=True)
class AlignTooSmall(Worded):
    """`@align(4) pos: vec3f`."""

    code: ClassVar[str] = "KG0811"
    rule: ClassVar[str] = "'@align' does not lower the alignment of a type."
    says: ClassVar[str] = (
        "'{type}' starts at a multiple of {natural} bytes, which '@align({value})' "
        "can't lower."
    )
    advice: ClassVar[str] = (
        "Leave it out. To keep the numbers closer together, use an array of scalars."
    )

    type: str
    natural: int
    value: int


@final
@dataclass(frozen=True, kw_only=True)
class SizeTooSmall(Worded):
    """`@size(8) pos: vec3f`."""

    code: ClassVar[str] = "KG0812"
    rule: ClassVar[str] = "'@size' reserves at least what the type takes."
    says: ClassVar[str] = (
        "'{type}' takes {natural} bytes, more than the {value} of '@size({value})'."
    )
    advice: ClassVar[str] = "Write '@size({natural})' or more, or leave it out."

    type: str
    natural: int
    value: int


@final
@dataclass(frozen=True, kw_only=True)
class StructTooDeep(Worded):
    """Structs and arrays in each other, beyond what WGSL has."""

    code: ClassVar[str] = "KG0813"
    rule: ClassVar[str] = "Structs and arrays nest no deeper than WGSL's limit."
    says: ClassVar[str] = (
        "Structs and arrays in {what} are nested {depth} deep; the limit is {limit}."
    )
    advice: ClassVar[str] = "Move the fields of an inner struct into the outer one."

    what: str
    depth: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class TooManyFields(Worded):
    """A struct with more fields than WGSL's have."""

    code: ClassVar[str] = "KG0814"
    rule: ClassVar[str] = "A struct has no more fields than WGSL's limit."
    says: ClassVar[str] = (
        "The struct '{name}' has {count} fields{within}, and the limit is {limit}."
    )
    advice: ClassVar[str] = "Put fields of one type into an array."

    name: str
    within: str
    count: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class StructTooLarge(Worded):
    """A struct that no adapter takes."""

    code: ClassVar[str] = "KG0815"
    rule: ClassVar[str] = "A struct is no larger than the limit."
    says: ClassVar[str] = (
        "The struct '{name}' takes {size} bytes, and the limit is {limit}."
    )
    points: ClassVar[str] = "this field exceeds the limit"
    advice: ClassVar[str] = "Pass the large part as a tensor of its own."

    name: str
    size: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class SizeInUniform(Worded):
    """A struct as a parameter whose `@size` is too small for a uniform buffer."""

    code: ClassVar[str] = "KG0816"
    rule: ClassVar[str] = (
        "In a parameter, '@size' reserves what the type takes in a uniform buffer."
    )
    says: ClassVar[str] = (
        "As a parameter, '{struct}' is kept in a uniform buffer, where its field "
        "'{field}' takes {needed} bytes, more than the {value} of '@size({value})'."
    )
    advice: ClassVar[str] = "{remedy}"

    struct: str
    field: str
    needed: int
    value: int
    declared: Span | None

    @property
    def related(self) -> tuple[Related, ...]:
        """The field."""
        return (Related(self.declared, "this field"),) if self.declared else ()

    @property
    def remedy(self) -> str:
        """What to do."""
        return (
            f"Write '@size({self.needed})' or more, or pass a tensor of one element: "
            f"'{self.struct}[1]'."
        )


@final
@dataclass(frozen=True, kw_only=True)
class UniformTooLarge(Worded):
    """Parameters that take more than a uniform buffer holds."""

    code: ClassVar[str] = "KG0817"
    rule: ClassVar[str] = "A kernel's parameters fit a uniform buffer."
    says: ClassVar[str] = (
        "The parameters of '{name}' take {size} bytes, and a uniform buffer holds "
        "{limit}."
    )
    advice: ClassVar[str] = "Pass the large parts as tensors."

    name: str
    size: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class UniformTooDeep(Worded):
    """A struct as a parameter that nests too deep in a uniform buffer."""

    code: ClassVar[str] = "KG0818"
    rule: ClassVar[str] = "Parameters nest no deeper than WGSL's limit."
    says: ClassVar[str] = (
        "As a parameter, '{struct}' is nested {depth} deep in a uniform buffer, and "
        "the limit is {limit}."
    )
    advice: ClassVar[str] = (
        "Pass a tensor of one element, '{struct}[1]', or nest fewer types."
    )

    struct: str
    depth: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class TooMuchCopied(Worded):
    """Copies of structs that take more statements than a file is made to have."""

    code: ClassVar[str] = "KG0819"
    rule: ClassVar[str] = "The copies of a file move no more values than the limit."
    says: ClassVar[str] = (
        "With this copy, the copies in this file move {count} values, and the limit is "
        "{limit}."
    )
    advice: ClassVar[str] = (
        "Each value is a statement of a shader. Put fields of one type into an array, "
        "which counts as one element, or move kernels to another file."
    )

    count: int
    limit: int
