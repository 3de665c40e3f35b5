"""What a WGSL module offers to a host: structs, bindings, overrides, entry points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

from kerngen.bind import tree
from kerngen.bind.constants import Constants, Kind, Value
from kerngen.ir.memory import FixedArray, MemoryType, Struct
from kerngen.source.text import Source, Span

Stage: TypeAlias = Literal["compute", "vertex", "fragment"]
STAGES: Final[tuple[Stage, ...]] = ("compute", "vertex", "fragment")
Access: TypeAlias = Literal["read", "write", "read_write"]


@final
@dataclass(frozen=True, slots=True)
class RuntimeArray:
    """An array that is as long as the buffer allows."""

    element: MemoryType


@final
@dataclass(frozen=True, slots=True)
class RuntimeStruct:
    """A struct whose last member is an array of any length; `struct` has it of length 1."""

    struct: Struct
    element: MemoryType


@final
@dataclass(frozen=True, slots=True)
class Texture:
    """A texture that shaders sample or load from."""

    dimension: str
    sample: str
    multisampled: bool = False


@final
@dataclass(frozen=True, slots=True)
class StorageTexture:
    """A texture that shaders load from and store to."""

    dimension: str
    format: str
    access: Access


@final
@dataclass(frozen=True, slots=True)
class Sampler:
    """A sampler, maybe one that compares."""

    comparison: bool


@final
@dataclass(frozen=True, slots=True)
class Opaque:
    """A type that no host shares with a shader: `bool`, a pointer, one of an override."""

    name: str
    why: str
    tool: str = ""
    """Who knows the type, if it is none of WGSL."""


Type: TypeAlias = (
    MemoryType
    | RuntimeArray
    | RuntimeStruct
    | Texture
    | StorageTexture
    | Sampler
    | Opaque
)


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """A variable that a bind group binds; `space` is 'uniform', 'storage' or 'handle'."""

    name: str
    group: int
    number: int
    type: Type
    space: Literal["uniform", "storage", "handle"]
    writes: bool
    span: Span = field(compare=False)


@final
@dataclass(frozen=True, slots=True)
class Override:
    """A constant that a pipeline chooses; without a `value` it must.

    `default` is its value where that follows from the file alone.
    """

    name: str
    kind: Kind
    key: str
    value: tree.Expression | None
    default: Value | None


@final
@dataclass(frozen=True, slots=True)
class Location:
    """A value at an '@location' that enters a vertex shader or leaves a fragment shader."""

    name: str
    number: int
    type: Type


@final
@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function that a pipeline runs, with what it reaches."""

    name: str
    stage: Stage
    bindings: tuple[Binding, ...]
    overrides: tuple[Override, ...]
    workgroup: tuple[tree.Expression, ...] = ()
    locations: tuple[Location, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """A module."""

    source: Source
    structs: tuple[Struct | RuntimeStruct, ...]
    bindings: tuple[Binding, ...]
    overrides: tuple[Override, ...]
    entries: tuple[EntryPoint, ...]
    constants: Constants = field(repr=False)


def memory_of(type_: Type) -> MemoryType | None:
    """Return a type of memory, an array without a length as one of length 1."""
    match type_:
        case RuntimeArray(element=element):
            return FixedArray(element, 1)
        case RuntimeStruct(struct=struct):
            return struct
        case Texture() | StorageTexture() | Sampler() | Opaque():
            return None
        case _:
            return type_
