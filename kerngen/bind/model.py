"""The interface of a WGSL module to its host: structs, bindings, overrides, entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

from kerngen.bind import tree
from kerngen.bind.constants import Constants, ConstantValue, Kind
from kerngen.ir.memory import FixedArray, MemoryType, Struct
from kerngen.source.text import Source, Span

Stage: TypeAlias = Literal["compute", "vertex", "fragment"]
STAGES: Final[tuple[Stage, ...]] = ("compute", "vertex", "fragment")
Access: TypeAlias = Literal["read", "write", "read_write"]


@final
@dataclass(frozen=True, slots=True)
class RuntimeArray:
    """A runtime-sized array: `array<T>`."""

    element: MemoryType


@final
@dataclass(frozen=True, slots=True)
class RuntimeStruct:
    """A struct that ends in a runtime-sized array; `struct` has one element of it."""

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
    """A sampler; a comparison sampler if marked."""

    comparison: bool


@final
@dataclass(frozen=True, slots=True)
class Opaque:
    """A type that hosts can't share: `bool`, a pointer, or one sized by an override."""

    name: str
    why: str
    tool: str = ""
    """The tool that defines the type, such as naga, if it is not WGSL's."""


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
    """A variable in a bind group; `space` is 'uniform', 'storage' or 'handle'."""

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
    """An override constant; one without a `value` must be set by the pipeline.

    `default` is the value, if it is known from the file alone; `key` is its `@id` or its
    name, by which pipelines set it.
    """

    name: str
    kind: Kind
    key: str
    value: tree.Expression | None
    default: ConstantValue | None


@final
@dataclass(frozen=True, slots=True)
class Location:
    """An input or output with an '@location'."""

    name: str
    number: int
    type: Type


@final
@dataclass(frozen=True, slots=True)
class EntryPoint:
    """An entry point, with the bindings and overrides that it reaches."""

    name: str
    stage: Stage
    bindings: tuple[Binding, ...]
    overrides: tuple[Override, ...]
    workgroup: tuple[tree.Expression, ...] = ()
    locations: tuple[Location, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """A WGSL module's interface."""

    source: Source
    structs: tuple[Struct | RuntimeStruct, ...]
    bindings: tuple[Binding, ...]
    overrides: tuple[Override, ...]
    entries: tuple[EntryPoint, ...]
    constants: Constants = field(repr=False)


def memory_of(type_: Type) -> MemoryType | None:
    """Return the memory type of a type, or None; a runtime-sized array has length 1."""
    match type_:
        case RuntimeArray(element=element):
            return FixedArray(element, 1)
        case RuntimeStruct(struct=struct):
            return struct
        case Texture() | StorageTexture() | Sampler() | Opaque():
            return None
        case _:
            return type_
