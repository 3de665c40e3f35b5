"""Declarations of a WGSL module: structs, bindings, constants, functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class StructMember:
    """A member of a struct; `size` is the number in its `@size`, None without one."""

    name: str
    type: str
    comment: str = ""
    size: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Struct:
    """A struct declaration: `struct name { members }`."""

    name: str
    members: tuple[StructMember, ...]


@final
@dataclass(frozen=True, slots=True)
class Const:
    """A constant that WGSL computes when it compiles: `const name: type = value;`."""

    name: str
    type: str
    value: t.Expr


@final
@dataclass(frozen=True, slots=True)
class Override:
    """A constant that each pipeline of the shader sets: `override name: u32;`."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Buffer:
    """A binding of a uniform or storage buffer, in group 0.

    `space` is `uniform`, `storage, read` or `storage, read_write`.
    """

    binding: int
    space: str
    name: str
    type: str


@final
@dataclass(frozen=True, slots=True)
class WorkgroupVar:
    """A variable in workgroup memory, `var<workgroup> name: type;`, of `size` bytes."""

    name: str
    type: str
    size: int


@final
@dataclass(frozen=True, slots=True)
class Function:
    """A function declaration below a comment; `parameters` are pairs of a name and a type."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    result: str
    body: tuple[t.Stmt, ...]
    comment: str = ""


@final
@dataclass(frozen=True, slots=True)
class Verbatim:
    """A helper function, as WGSL text."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The compute entry point, `@compute @workgroup_size(64) fn main(...)`.

    `builtins` are its parameters: (built-in value, name, type).  `workgroup_size` is the
    number of lanes, or the name of an override.
    """

    workgroup_size: int | str
    builtins: tuple[tuple[str, str, str], ...]
    body: tuple[t.Stmt, ...]


Declaration: TypeAlias = (
    Struct | Const | Override | Buffer | WorkgroupVar | Function | Verbatim | EntryPoint
)


@final
@dataclass(frozen=True, slots=True)
class Module:
    """A WGSL module: the extensions that it enables, then its declarations in order."""

    declarations: tuple[Declaration, ...]
    enables: tuple[str, ...] = ()
