"""What a WGSL module consists of: structs, bindings, constants, functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class StructMember:
    """One member of a struct, which takes `size` bytes if that is given."""

    name: str
    type: str
    comment: str = ""
    size: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Struct:
    """`struct name { members }`."""

    name: str
    members: tuple[StructMember, ...]


@final
@dataclass(frozen=True, slots=True)
class Const:
    """`const name: type = value;`."""

    name: str
    type: str
    value: t.Expr


@final
@dataclass(frozen=True, slots=True)
class Override:
    """`override name: u32;`, a constant whose value a pipeline gives."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Buffer:
    """A uniform or storage binding of group 0."""

    binding: int
    space: str
    name: str
    type: str


@final
@dataclass(frozen=True, slots=True)
class WorkgroupVar:
    """`var<workgroup> name: type;`."""

    name: str
    type: str
    size: int


@final
@dataclass(frozen=True, slots=True)
class Function:
    """A function of the shader."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    result: str
    body: tuple[t.Stmt, ...]
    comment: str = ""


@final
@dataclass(frozen=True, slots=True)
class Verbatim:
    """A helper function kept as text."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The compute entry point `main`; `builtins` are (builtin, name, type).

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
    """One shader: extensions, then declarations in order."""

    declarations: tuple[Declaration, ...]
    enables: tuple[str, ...] = ()
