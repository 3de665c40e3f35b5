"""The types that a program writes."""

from __future__ import annotations

import re

from kerngen.check.faults_names import UnknownType
from kerngen.check.faults_types import TypeNotAllowed
from kerngen.check.faults_unsupported import F16Unsupported, MatrixUnsupported
from kerngen.check.scope import closest
from kerngen.ir.types import VECTORS, Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.syntax import ast

SCALARS = {scalar.spelling: scalar for scalar in Scalar}

_ELSEWHERE = {
    "float": "f32",
    "double": "f32",
    "float32": "f32",
    "f64": "f32",
    "int": "i32",
    "int32": "i32",
    "i64": "i32",
    "uint": "u32",
    "uint32": "u32",
    "u8": "u32",
    "u64": "u32",
    "vec2": "vec2f",
    "vec3": "vec3f",
    "vec4": "vec4f",
}
"""What other languages call our types."""

_HALF = re.compile(r"f16|vec[234]h")
_MATRIX = re.compile(r"mat([234])x([234])[fh]")


def resolve_type(
    faults: Faults, name: ast.Identifier, structs: frozenset[str] = frozenset()
) -> ValueType | None:
    """Return the type that a name stands for; None after a fault."""
    if name.name in SCALARS:
        return SCALARS[name.name]
    if name.name in VECTORS:
        return VECTORS[name.name]
    if name.name not in structs and not report_unsupported_type(faults, name):
        suggestion = _ELSEWHERE.get(name.name) or closest(
            name.name, [*SCALARS, *VECTORS]
        )
        faults.add(UnknownType(span=name.span, name=name.name, suggestion=suggestion))
    return None


def report_unsupported_type(faults: Faults, name: ast.Identifier) -> bool:
    """Whether a name is a type that is not supported yet; if so, that is a fault."""
    if _HALF.fullmatch(name.name):
        faults.add(F16Unsupported(span=name.span, type=name.name))
        return True
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
    faults.add(
        TypeNotAllowed(
            span=written.span,
            place=place,
            type=" ".join(written.span.text.split()),
            remedy="Use 'f32', 'i32' or 'u32'.",
        )
    )
    return None
