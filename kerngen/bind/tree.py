"""The syntax tree of a WGSL module's declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.source.text import Span


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A literal, with its suffix: `64u`."""

    span: Span
    text: str


@final
@dataclass(frozen=True, slots=True)
class Truth:
    """A bool literal."""

    span: Span
    value: bool


@final
@dataclass(frozen=True, slots=True)
class Name:
    """A name or a type, with template arguments if any: `array<f32, 4>`."""

    span: Span
    text: str
    arguments: tuple[Expression, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A call: `u32(N)`."""

    span: Span
    callee: Name
    arguments: tuple[Expression, ...]


@final
@dataclass(frozen=True, slots=True)
class Prefixed:
    """A unary operator and its operand."""

    span: Span
    operator: str
    operand: Expression


@final
@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator and its operands."""

    span: Span
    operator: str
    left: Expression
    right: Expression


@final
@dataclass(frozen=True, slots=True)
class Part:
    """An element, a member or a component of a value."""

    span: Span
    whole: Expression
    index: Expression | str


Expression: TypeAlias = Number | Truth | Name | Call | Prefixed | Binary | Part


@final
@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: `@binding(0)`."""

    span: Span
    name: str
    arguments: tuple[Expression, ...]


Attributes: TypeAlias = tuple[Attribute, ...]


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct, or a parameter of a function."""

    name: Name
    type: Name
    attributes: Attributes


@final
@dataclass(frozen=True, slots=True)
class Struct:
    """A struct."""

    name: Name
    members: tuple[Member, ...]


@final
@dataclass(frozen=True, slots=True)
class Function:
    """A function; `names` are those that its body uses and does not declare.

    `free` has those of them that are used other than by a call, each with the span of its
    first use.
    """

    name: Name
    parameters: tuple[Member, ...]
    attributes: Attributes
    result: Member | None
    names: frozenset[str]
    free: tuple[Name, ...]


@final
@dataclass(frozen=True, slots=True)
class Variable:
    """A module-level variable; `template` has its address space and access mode."""

    name: Name
    template: tuple[Expression, ...]
    type: Name | None
    value: Expression | None
    attributes: Attributes


@final
@dataclass(frozen=True, slots=True)
class Constant:
    """A `const` declaration."""

    name: Name
    type: Name | None
    value: Expression


@final
@dataclass(frozen=True, slots=True)
class Override:
    """An `override` declaration."""

    name: Name
    type: Name | None
    value: Expression | None
    attributes: Attributes


@final
@dataclass(frozen=True, slots=True)
class Alias:
    """An `alias` declaration."""

    name: Name
    type: Name


Declaration: TypeAlias = Struct | Function | Variable | Constant | Override | Alias


@final
@dataclass(frozen=True, slots=True)
class Module:
    """The declarations of a file, and its enabled extensions."""

    declarations: tuple[Declaration, ...]
    enabled: tuple[str, ...]


def attribute(attributes: Sequence[Attribute], name: str) -> Attribute | None:
    """Return the attribute with this name, or None."""
    return next((each for each in attributes if each.name == name), None)
