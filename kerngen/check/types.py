"""The types that a program writes."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from kerngen.check.faults_names import UnknownType
from kerngen.check.faults_types import TypeNotAllowed
from kerngen.check.faults_unsupported import MatrixUnsupported
from kerngen.check.scope import closest, one_line
from kerngen.ir.types import VECTORS, Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.foreign import TYPES

SCALARS = {scalar.spelling: scalar for scalar in Scalar}

HALVES: Final[dict[str, ValueType]] = {
    "f16": Scalar.F32,
    **{f"vec{width}h": VECTORS[f"vec{width}f"] for width in (2, 3, 4)},
}
"""The types for storage only, and what they are read as."""

_MATRIX = re.compile(r"mat([234])x([234])[fh]")


def resolve_type(
    faults: Faults, name: ast.Identifier, structs: Container[str] = frozenset()
) -> ValueType | None:
    """Return the type that a name stands for; None after a fault."""
    if name.name in SCALARS:
        return SCALARS[name.name]
    if name.name in VECTORS:
        return VECTORS[name.name]
    if name.name in HALVES:
        value = HALVES[name.name].spelling
        remedy = f"Use '{value}': '{name.name}' is for elements of tensors only."
        _report_half(faults, name.span, name.name, remedy)
    elif name.name not in structs and not report_unsupported_type(faults, name):
        known = [*SCALARS, *VECTORS, *HALVES]
        suggestion = TYPES.get(name.name) or closest(name.name, known)
        faults.add(UnknownType(span=name.span, name=name.name, suggestion=suggestion))
    return None


def resolve_element(
    faults: Faults, name: ast.Identifier, structs: Container[str]
) -> ValueType | None:
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


def report_unsupported_type(faults: Faults, name: ast.Identifier) -> bool:
    """Whether a name is a type that is not supported yet; if so, that is a fault."""
    if shape := _MATRIX.fullmatch(name.name):
        columns, rows = shape.groups()
        faults.add(
            MatrixUnsupported(
                span=name.span, type=name.name, columns=columns, rows=rows
            )
        )
        return True
    return False


def resolve_scalar(
    faults: Faults, written: ast.TypeName, place: str, *, allow_bool: bool
) -> Scalar | None:
    """Return the scalar type of a function's or constant's value."""
    type_ = resolve_type(faults, written.name)
    if type_ is None:
        return None
    allowed = written.axes is None and (allow_bool or type_ is not Scalar.BOOL)
    if isinstance(type_, Scalar) and allowed:
        return type_
    remedy = "Use 'f32', 'i32' or 'u32'."
    if written.axes is not None:
        remedy = f"Take '{type_.spelling}', and pass an element, as in 'f(x[i])'."
    faults.add(
        TypeNotAllowed(
            span=written.span,
            place=place,
            type=" ".join(written.span.text.split()),
            remedy=remedy,
        )
    )
    return None
