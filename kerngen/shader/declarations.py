"""Declarations of a WGSL module: structs, bindings, constants, functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class StructMember:
    """A member of a struct; `size` is its `@size`, if it has one."""

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
    """A constant declaration: `const name: type = value;`."""

    name: str
    type: str
    value: t.Expr


@final
@dataclass(frozen=True, slots=True)
class Override:
    """An override declaration: `override name: u32;`, set when a pipeline is made."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Buffer:
    """A uniform or storage buffer binding in group 0."""

    binding: int
    space: str
    name: str
    type: str


@final
@dataclass(frozen=True, slots=True)
class WorkgroupVar:
    """A workgroup variable: `var<workgroup> name: type;`."""

    name: str
    type: str
    size: int


@final
@dataclass(frozen=True, slots=True)
class Function:
    """A function declaration."""

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
    """The compute entry point; `builtins` are (builtin, name, type).

    `workgroup_size` is a number, or the name of an override.
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
    """A WGSL module: extensions, then declarations in order."""

    declarations: tuple[Declaration, ...]
    enables: tuple[str, ...] = ()
