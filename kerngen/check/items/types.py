"""Resolving the names of types."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final, TypeAlias

from kerngen.check import faults as diag
from kerngen.ir.memory import LEAVES, NARROW, Struct
from kerngen.ir.types import COMPOSITES, Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.mistakes.foreign_types import unknown_type_hint

SCALARS = {scalar.spelling: scalar for scalar in Scalar}

HALVES: Final[dict[str, ValueType]] = {
    name: leaf.type for name, leaf in LEAVES.items() if leaf.is_half
}
"""The types with f16 components, which are for storage only, and the types of their values."""

Structs: TypeAlias = Mapping[str, Struct | None]
"""The structs in scope by name; None is a struct with a fault: its uses report nothing."""


def resolve_type(
    faults: Faults, name: ast.Identifier, structs: Structs | None = None
) -> ValueType | Struct | None:
    """Return the type with this name, or None after a fault."""
    known = structs or {}
    if name.name in SCALARS:
        return SCALARS[name.name]
    if name.name in COMPOSITES:
        return COMPOSITES[name.name]
    if name.name in known:
        return known[name.name]
    if name.name in HALVES:
        value = HALVES[name.name].spelling
        _report(faults, name.span, "half", "A value", name.name, value)
        return None
    if name.name in NARROW:
        report_narrow(faults, name, "A value")
        return None
    report_unknown_type(faults, name, [*SCALARS, *COMPOSITES, *HALVES, *known])
    return None


def report_unknown_type(
    faults: Faults, name: ast.Identifier, known: Iterable[str], array: str = "[n]"
) -> None:
    """Report an unknown type; `array` is how arrays are written at its place."""
    remedy = unknown_type_hint(name.name, known, array)
    faults.add(diag.UnknownType(span=name.span, remedy=remedy))


def resolve_element(
    faults: Faults, name: ast.Identifier, structs: Structs
) -> ValueType | Struct | None:
    """Return the type that elements of a tensor are read as, or None after a fault."""
    if name.name in NARROW:
        return NARROW[name.name].type
    return HALVES.get(name.name) or resolve_type(faults, name, structs)


def report_narrow(faults: Faults, name: ast.Identifier, place: str) -> None:
    """Report an integer type of 8 or 4 bits, where only tensors may have one."""
    value = NARROW[name.name].type.spelling
    _report(faults, name.span, "narrow", place, name.name, value)


def report_cast_to_half(faults: Faults, call: ast.Call) -> None:
    """Report a cast to a type that only memory has, such as f16."""
    text = call.arguments[0].span.one_line() if len(call.arguments) == 1 else "x"
    name = call.function.name
    _report(faults, call.span, "cast", "A value", name, text)


def resolve_scalar(faults: Faults, written: ast.TypeName, place: str) -> Scalar | None:
    """Return the scalar type of a constant's value, or None after a fault."""
    type_ = resolve_type(faults, written.name)
    if type_ is None:
        return None
    if isinstance(type_, Scalar) and written.axes is None:
        return type_
    case: diag.NotAllowed = "constant" if written.axes is None else "constants"
    text = written.span.collapsed
    _report(faults, written.span, case, place, text, type_.spelling)
    return None


def resolve_value(
    faults: Faults, written: ast.TypeName, place: str, structs: Container[str]
) -> ValueType | None:
    """Return the type of a function's parameter or result, or None after a fault."""
    if written.name.name in structs:
        _report(faults, written.span, "struct", place, written.span.collapsed)
        return None
    type_ = resolve_type(faults, written.name)
    assert not isinstance(type_, Struct), "none are given"
    if type_ is None or written.axes is None:
        return type_
    text = written.span.collapsed
    _report(faults, written.span, "tensor", place, text, type_.spelling)
    return None


def _report(
    faults: Faults,
    span: Span,
    case: diag.NotAllowed,
    place: str,
    type_: str,
    instead: str = "",
) -> None:
    """Record a type that can't be there."""
    faults.add(
        diag.TypeNotAllowed(
            span=span, case=case, place=place, type=type_, instead=instead
        )
    )
