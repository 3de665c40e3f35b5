"""The types that a program writes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final, TypeAlias

from kerngen.check.faults.names import UnknownType
from kerngen.check.faults.types import TypeNotAllowed
from kerngen.check.scope import one_line
from kerngen.ir.memory import LEAVES, Struct
from kerngen.ir.types import COMPOSITES, Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.foreign_types import unknown_type_hint

SCALARS = {scalar.spelling: scalar for scalar in Scalar}

HALVES: Final[dict[str, ValueType]] = {
    name: leaf.type for name, leaf in LEAVES.items() if leaf.is_half
}
"""The types for storage only, and what they are read as."""

Structs: TypeAlias = Mapping[str, Struct | None]
"""The structs in scope by name; None is one with a fault, whose uses are none."""


def resolve_type(
    faults: Faults, name: ast.Identifier, structs: Structs | None = None
) -> ValueType | Struct | None:
    """Return the type that a name stands for; None after a fault."""
    known = structs or {}
    if name.name in SCALARS:
        return SCALARS[name.name]
    if name.name in COMPOSITES:
        return COMPOSITES[name.name]
    if name.name in known:
        return known[name.name]
    if name.name in HALVES:
        value = HALVES[name.name].spelling
        remedy = (
            f"Use '{value}': '{name.name}' is for elements of tensors and members of "
            "structs only."
        )
        _report_half(faults, name.span, name.name, remedy)
        return None
    report_unknown_type(faults, name, [*SCALARS, *COMPOSITES, *HALVES, *known])
    return None


def report_unknown_type(
    faults: Faults, name: ast.Identifier, known: Iterable[str], array: str = "[n]"
) -> None:
    """Record a type that is not known; `array` is how the place writes an array."""
    remedy = unknown_type_hint(name.name, known, array)
    faults.add(UnknownType(span=name.span, name=name.name, remedy=remedy))


def resolve_element(
    faults: Faults, name: ast.Identifier, structs: Structs
) -> ValueType | Struct | None:
    """Return the type that the elements of a tensor are read as; None after a fault."""
    return HALVES.get(name.name) or resolve_type(faults, name, structs)


def report_cast_to_half(faults: Faults, call: ast.Call) -> None:
    """Record a call of a type for storage only."""
    text = call.arguments[0].span.text if len(call.arguments) == 1 else "x"
    remedy = f"Write 'quantizeToF16({one_line(text)})' to round to an f16."
    name = call.function
    _report_half(faults, call.span, name.name, remedy)


def _report_half(faults: Faults, span: Span, type_: str, remedy: str) -> None:
    faults.add(TypeNotAllowed(span=span, place="A value", type=type_, remedy=remedy))


def resolve_scalar(faults: Faults, written: ast.TypeName, place: str) -> Scalar | None:
    """Return the scalar type of a constant's value."""
    type_ = resolve_type(faults, written.name)
    if type_ is None:
        return None
    if isinstance(type_, Scalar) and written.axes is None:
        return type_
    remedy = "Use 'f32', 'i32' or 'u32'."
    if written.axes is not None:
        remedy = f"A constant is one number: '{type_.spelling}'."
    _report_type(faults, written, place, remedy)
    return None


def resolve_value(
    faults: Faults, written: ast.TypeName, place: str, structs: Container[str]
) -> ValueType | None:
    """Return the type of what a function takes or returns: no struct."""
    if written.name.name in structs:
        remedy = "Take the members that are needed, and pass them one by one."
        _report_type(faults, written, place, remedy)
        return None
    type_ = resolve_type(faults, written.name)
    assert not isinstance(type_, Struct), "none are given"
    if type_ is None or written.axes is None:
        return type_
    _report_type(faults, written, place, _element_remedy(type_))
    return None


def _element_remedy(type_: ValueType | Struct) -> str:
    return f"Take '{type_.spelling}', and pass an element, as in 'f(x[i])'."


def _report_type(
    faults: Faults, written: ast.TypeName, place: str, remedy: str
) -> None:
    """Record a type that can't be there."""
    faults.add(
        TypeNotAllowed(
            span=written.span,
            place=place,
            type=" ".join(written.span.text.split()),
            remedy=remedy,
        )
    )
