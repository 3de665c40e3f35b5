"""Checking operators, `if` and constructors, by the types of their operands."""

from __future__ import annotations

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.hints.conversions import (
    MEANT_BY_OPERATOR,
    conversion,
    operand_hint,
    unification,
)
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.nodes import Binary, BuiltinCall, Cast, Construct, Expr, Select, Unary
from kerngen.ir.operators import composite_type, fits_construct, is_composite
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.source.text import Span
from kerngen.syntax import ast

_EQUALITY = frozenset({"==", "!="})
_ORDER = ast.COMPARISONS - _EQUALITY


NUMBERS = (Scalar.F32, Scalar.I32, Scalar.U32)
_INTEGERS = (Scalar.I32, Scalar.U32)
_SIGNED = (Scalar.F32, Scalar.I32)


def check_unary(ex: Expressions, node: ast.Unary, want: Scalar | None) -> Expr | None:
    """Check `-x`, `~x` or `not x`."""
    if node.op == "not":
        operand = ex.condition(node.operand)
        return operand and Unary("not", operand, Scalar.BOOL)
    if node.op == "-" and isinstance(node.operand, ast.Number):
        return ex.literal(node.span, -node.operand.value, want)
    operand = ex.check(node.operand, want)
    if operand is None:
        return None
    if ex.rules.mixes:
        mixed = mixed_type(ex, node.op, (node.operand, operand))
        return mixed and Unary(node.op, operand, mixed)
    accepted = _SIGNED if node.op == "-" else _INTEGERS
    if not check_operand(ex, f"{node.op}x", node.operand, operand.type, accepted):
        return None
    return ex.finish(Unary(node.op, operand, operand.type), node.span)


def check_operand(
    ex: Expressions,
    operator: str,
    node: ast.Expr,
    actual: ValueType,
    accepted: tuple[Scalar, ...],
    want: Scalar | None = None,
) -> bool:
    """Whether an operator accepts a type, or its components; reports it if not."""
    if scalar_of(actual) in accepted:
        return True
    *first, last = (f"'{scalar.spelling}'" for scalar in accepted)
    alike = [scalar for scalar in accepted if scalar.is_integer]
    wanted = alike[0] if actual.is_integer and alike else accepted[0]
    if want in accepted:
        wanted = want
    like: ValueType = wanted
    if isinstance(actual, Vector):
        like = Vector(wanted, actual.width)
    remedy = MEANT_BY_OPERATOR.get((operator, actual)) or conversion(node, actual, like)
    listed = f"{', '.join(first)} and {last}" if first else last
    report_operand(ex, operator, node, actual, listed, remedy)
    return False


def report_operand(
    ex: Expressions,
    operator: str,
    node: ast.Expr,
    actual: ValueType,
    accepted: str,
    remedy: str,
) -> None:
    """Report an operand of a type that an operator, cast or reduction does not take."""
    ex.env.faults.add(
        diag.OperandType(
            span=node.span,
            operator=operator,
            accepted=accepted,
            actual=actual.spelling,
            remedy=remedy,
        )
    )


def check_binary(ex: Expressions, node: ast.Binary, want: Scalar | None) -> Expr | None:
    """Check an operation on two operands, which must have one type."""
    if node.op in ast.LOGIC:
        left = ex.condition(node.left)
        right = ex.condition(node.right, guard=node.left)
        return left and right and Binary(node.op, left, right, Scalar.BOOL)
    if node.op in ast.SHIFTS and not ex.rules.mixes:
        return _shift(ex, node, want)
    compares = node.op in ast.COMPARISONS
    sides = (node.left, node.right)
    # A comparison is a bool, so the type that its place wants is not that of its sides.
    wanted = None if compares else want
    left, right = ex.check_together(sides, wanted)
    if left is None or right is None:
        return None
    operands = (node.left, left), (node.right, right)
    if ex.rules.mixes:
        mixed = mixed_type(ex, node.op, *operands)
        result = Scalar.BOOL if compares else mixed
        return mixed and result and Binary(node.op, left, right, result)
    if is_composite(left.type) or is_composite(right.type):
        return check_composite(ex, node, left, right)
    if not _one_type(ex, node.op, node, *operands, want=wanted):
        return None
    accepted: tuple[Scalar, ...] = NUMBERS
    if node.op in _EQUALITY:
        accepted = tuple(Scalar)
    elif node.op in ast.ON_BITS:
        accepted = _INTEGERS
    if not check_operand(ex, node.op, node.left, left.type, accepted):
        return None
    type_ = Scalar.BOOL if compares else left.type
    return ex.finish(Binary(node.op, left, right, type_), node.span)


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
        diag.CompositeOperands(
            span=span,
            op=op,
            left=left[1].spelling,
            right=right[1].spelling,
            remedy=operand_hint(op, left[0].one_line(), left[1], right),
        )
    )


def _one_type(
    ex: Expressions,
    what: str,
    node: ast.Expr,
    first: tuple[ast.Expr, Expr],
    second: tuple[ast.Expr, Expr],
    *,
    want: Scalar | None = None,
) -> bool:
    """Whether two operands have one type; reports it if not."""
    (left_node, left), (right_node, right) = first, second
    if left.type == right.type:
        return True
    ex.env.faults.add(
        diag.MixedTypes(
            span=node.span,
            what=what,
            left=left.type.spelling,
            right=right.type.spelling,
            left_span=left_node.span,
            right_span=right_node.span,
            remedy=unification((left_node, left.type), (right_node, right.type), want),
        )
    )
    return False


def _shift(ex: Expressions, node: ast.Binary, want: Scalar | None) -> Expr | None:
    left = ex.check(node.left, want)
    if left is not None and isinstance(left.type, Vector):
        counts = ex.check(node.right, Scalar.U32)
        return counts and check_composite(ex, node, left, counts)
    right = ex.check_as(node.right, Scalar.U32, "A shift count")
    if left is None or right is None:
        return None
    if not check_operand(ex, node.op, node.left, left.type, _INTEGERS):
        return None
    return ex.finish(Binary(node.op, left, right, left.type), node.span)


def check_conditional(
    ex: Expressions, node: ast.Conditional, want: Scalar | None
) -> Expr | None:
    """Check an `if` expression: both values must have one type."""
    condition = ex.condition(node.condition)
    branches = (node.then, node.otherwise)
    inner = ex.guarded(node.condition)
    then, otherwise = inner.check_together(branches, want)
    if condition is None or then is None or otherwise is None:
        return None
    sides = (node.then, then), (node.otherwise, otherwise)
    if ex.rules.mixes:
        mixed = mixed_type(ex, "if", *sides)
        return mixed and Select(condition, then, otherwise, mixed)
    if not _one_type(ex, "if", node, *sides, want=want):
        return None
    return ex.finish(Select(condition, then, otherwise, then.type), node.span)


_ON_INTEGERS = frozenset({"&", "|", "^", "<<", ">>", "~", *TRUNCATING})
_DIVIDES = frozenset({"/", "%", *TRUNCATING})


def mixed_type(
    ex: Expressions, op: str, *operands: tuple[ast.Expr, Expr]
) -> Scalar | None:
    """Return the type of an operation whose operands' types may mix."""
    if not all(_accepts(ex, op, node, value) for node, value in operands):
        return None
    node, value = operands[-1]
    if op in _DIVIDES and constant_value(value) == 0:
        ex.env.faults.add(diag.DivisionByZero(span=node.span, operator=op))
        return None
    return shared_type(*(value for _, value in operands))


def shared_type(*values: Expr) -> Scalar:
    """Return F32 if any of the types is, else I32: the type of a mixed operation."""
    return Scalar.F32 if any(v.type is Scalar.F32 for v in values) else Scalar.I32


def floored(ex: Expressions, node: ast.Call) -> Expr | None:
    """Check a call of 'mod' or 'floor_div' with two integers."""
    name = node.function.name
    values = ex.check_all(node.arguments)
    if values is None:
        return None
    operands = zip(node.arguments, values, strict=True)
    mixed = mixed_type(ex, name, *operands)
    return mixed and BuiltinCall(name, values, Scalar.I32)


def _accepts(ex: Expressions, op: str, node: ast.Expr, value: Expr) -> bool:
    integers = op in _ON_INTEGERS
    if value.type.is_integer or (value.type is Scalar.F32 and not integers):
        return True
    remedy = conversion(node, value.type, Scalar.I32)
    if op in _ORDER:
        remedy = f"It is true or false by itself: write '{node.span.one_line()}'."
    accepted = "integers" if integers else "numbers"
    report_operand(ex, op, node, value.type, accepted, remedy)
    return False


# Constructors


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
        diag.ConstructParts(
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
