"""Operations of the host, whose numbers mix: of type F32 if an operand is, else I32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerngen.check.faults.types import DivisionByZero, OperandType
from kerngen.check.hints.conversions import conversion
from kerngen.check.scope import one_line
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.nodes import BuiltinCall, Expr
from kerngen.ir.types import Scalar
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

_ON_INTEGERS = frozenset({"&", "|", "^", "<<", ">>", "~", *TRUNCATING})
_ORDER = frozenset({"<", "<=", ">", ">="})
_DIVIDES = frozenset({"/", "%", *TRUNCATING})


def mixed_type(
    ex: Expressions, op: str, *operands: tuple[ast.Expr, Expr]
) -> Scalar | None:
    """Return the type of an operation on numbers; None after a fault."""
    if not all(_accepts(ex, op, node, value) for node, value in operands):
        return None
    node, value = operands[-1]
    if op in _DIVIDES and constant_value(value) == 0:
        ex.env.faults.add(DivisionByZero(span=node.span, operator=op))
        return None
    return shared_type(*(value for _, value in operands))


def shared_type(*values: Expr) -> Scalar:
    """Return the type of an operation on numbers: F32 if any of them is, else I32."""
    return Scalar.F32 if any(v.type is Scalar.F32 for v in values) else Scalar.I32


def floored(ex: Expressions, node: ast.Call) -> Expr | None:
    """Return a call of 'mod' or 'floor_div', of two integers."""
    name = node.function.name
    values = [ex.check(argument) for argument in node.arguments]
    pairs = zip(node.arguments, values, strict=True)
    operands = [(part, value) for part, value in pairs if value is not None]
    if len(operands) < len(values) or mixed_type(ex, name, *operands) is None:
        return None
    return BuiltinCall(name, tuple(value for _, value in operands), Scalar.I32)


def _accepts(ex: Expressions, op: str, node: ast.Expr, value: Expr) -> bool:
    integers = op in _ON_INTEGERS
    if value.type.is_integer or (value.type is Scalar.F32 and not integers):
        return True
    remedy = conversion(node, value.type, Scalar.I32)
    if op in _ORDER:
        remedy = f"It is true or false by itself: write '{one_line(node.span.text)}'."
    ex.env.faults.add(
        OperandType(
            span=node.span,
            operator=op,
            accepted="integers" if integers else "numbers",
            actual=value.type.spelling,
            remedy=remedy,
        )
    )
    return False
