"""Checking vectors and matrices: constructors, operators and functions."""

from __future__ import annotations

from kerngen.check.expressions.checker import Expressions, complete
from kerngen.check.faults.places import CompositeOperands, ConstructParts
from kerngen.check.faults.types import BuiltinArguments
from kerngen.check.hints.conversions import composite_conversion, operand_hint
from kerngen.ir.builtins.row import Builtin
from kerngen.ir.geometry import Geometry
from kerngen.ir.nodes import Binary, BuiltinCall, Cast, Construct, Expr, Select
from kerngen.ir.operators import composite_type, fits_construct, is_composite
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.source.text import Span
from kerngen.syntax import ast


def check_construct(
    ex: Expressions, node: ast.Call, type_: Vector | Matrix
) -> Expr | None:
    """Check `vec3f(...)` or `mat2x2f(...)`; return its typed form."""
    parts = ex.check_all(node.arguments, scalar_of(type_))
    if parts is None:
        return None
    if len(parts) == 1 and parts[0].type == type_:
        return parts[0]
    if _is_conversion(type_, parts):
        return Cast(parts[0], type_)
    if isinstance(type_, Matrix):
        parts = _columns(type_, parts)
    if fits_construct(type_, tuple(part.type for part in parts)):
        return Construct(type_, parts)
    ex.env.faults.add(
        ConstructParts(
            span=node.span,
            type=type_.spelling,
            actual=", ".join(part.type.spelling for part in parts),
            accepted=_accepted(type_),
        )
    )
    return None


def _is_conversion(type_: Vector | Matrix, parts: tuple[Expr, ...]) -> bool:
    """Whether a vector of other scalars is converted, component by component."""
    if len(parts) != 1 or not isinstance(type_, Vector):
        return False
    given = parts[0].type
    return isinstance(given, Vector) and given.width == type_.width


def _columns(type_: Matrix, parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the columns of a matrix that is made of its components, in their order."""
    rows = type_.rows
    if [part.type for part in parts] != [Scalar.F32] * (type_.columns * rows):
        return parts
    starts = range(0, len(parts), rows)
    return tuple(Construct(type_.column, parts[n : n + rows]) for n in starts)


def _accepted(type_: Vector | Matrix) -> str:
    if isinstance(type_, Matrix):
        column = f"{type_.columns} columns of type '{type_.column.spelling}'"
        return f"{column}, or {type_.columns * type_.rows} of 'f32'"
    scalar = type_.scalar.spelling
    return (
        f"{type_.width} components of type '{scalar}', vectors of them, or one for all"
    )


def check_composite(
    ex: Expressions, node: ast.Binary, left: Expr, right: Expr
) -> Expr | None:
    """Check an operation on a vector or matrix; return it typed, or None after a fault."""
    type_ = composite_type(node.op, left.type, right.type)
    if type_ is not None:
        return Binary(node.op, left, right, type_)
    sides = (node.left.span, left.type), (node.right.span, right.type)
    report_operands(ex, node.span, node.op, *sides)
    return None


def report_operands(
    ex: Expressions,
    span: Span,
    op: ast.BinaryOp,
    left: tuple[Span, ValueType],
    right: tuple[Span, ValueType],
) -> None:
    """Report an operator that is not defined for two types."""
    ex.env.faults.add(
        CompositeOperands(
            span=span,
            op=op,
            left=left[1].spelling,
            right=right[1].spelling,
            remedy=operand_hint(op, left[0].one_line(), left[1], right),
        )
    )


def check_geometry(ex: Expressions, node: ast.Call, function: Geometry) -> Expr | None:
    """Check a call of a function of whole vectors or matrices, such as `dot`."""
    known = ex.check_all(node.arguments, Scalar.F32)
    if known is None:
        return None
    result = function.result(tuple(value.type for value in known))
    if result is not None:
        return BuiltinCall(function.name, known, result)
    _report(ex, node, known, function.accepted)
    return None


def check_componentwise(
    ex: Expressions, node: ast.Call, builtin: Builtin, typed: list[Expr | None]
) -> Expr | None:
    """Check a call of a built-in that works on each component of vectors.

    Literals take the type of the vectors; the last argument of `mix` may be a scalar.
    """
    like = next(v.type for v in typed if v is not None and is_composite(v.type))
    pairs = zip(typed, node.arguments, strict=True)
    values = [value or ex.check(part, scalar_of(like)) for value, part in pairs]
    known: tuple[Expr, ...] | None = complete(values)
    if known is None:
        return None
    if builtin.splats_last:
        known = (*known[:-1], splat(known[-1], like))
    if builtin.name == "select":  # by one condition for all of two vectors
        otherwise, then, condition = known
        if then.type == otherwise.type and condition.type is Scalar.BOOL:
            return Select(condition, then, otherwise, like)
    result = builtin.result(tuple(value.type for value in known))
    if result is not None:
        return BuiltinCall(builtin.name, known, result)
    _report(ex, node, known, "vectors of one type, or scalars of one")
    return None


def _report(
    ex: Expressions, node: ast.Call, values: tuple[Expr, ...], accepted: str
) -> None:
    like = next((v.type for v in values if isinstance(v.type, Vector)), None)
    scalars = [n for n, value in enumerate(values) if not is_composite(value.type)]
    remedy = f"Pass {accepted}, or convert the arguments."
    if like is not None and scalars:
        text = node.arguments[scalars[0]].span.one_line()
        remedy = composite_conversion(text, values[scalars[0]].type, like)
    ex.env.faults.add(
        BuiltinArguments(
            span=node.span,
            function=node.function.name,
            actual=", ".join(value.type.spelling for value in values),
            accepted=accepted,
            remedy=remedy,
        )
    )


def splat(value: Expr, like: ValueType) -> Expr:
    """Return a scalar as a vector of equal components, if `like` is a vector."""
    if isinstance(like, Vector) and not is_composite(value.type):
        return Construct(like, (value,))
    return value
