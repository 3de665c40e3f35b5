"""Expressions that the host computes, where scalars mix freely.

Operands keep their own types; an operation is of type F32 if an operand is, else I32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import assert_never

from kerngen.check.environment import Environment
from kerngen.check.faults_types import ConditionType, DivisionByZero, OperandType
from kerngen.check.infinity import INFINITY, is_infinity
from kerngen.check.literals import literal
from kerngen.check.remedies import conversion
from kerngen.check.scope import Scope, Symbol, one_line
from kerngen.ir.builtins.evaluate import bounds, constant_value
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Constant,
    Expr,
    Select,
    Unary,
)
from kerngen.ir.types import Scalar
from kerngen.source.text import Span
from kerngen.syntax import ast

_LOGIC = frozenset({"and", "or"})
_EQUALITY = frozenset({"==", "!="})
_ORDER = frozenset({"<", "<=", ">", ">="})
_ON_INTEGERS = frozenset({"&", "|", "^", "<<", ">>"})


@dataclass(frozen=True)
class FreeMixing(ABC):
    """Checks expressions in one scope; what may be read is up to the subclass."""

    env: Environment
    scope: Scope

    @abstractmethod
    def check_name(self, node: ast.Name) -> Expr | None:
        """Check a bare name."""

    @abstractmethod
    def check_member(self, node: ast.Member) -> Expr | None:
        """Check a member."""

    @abstractmethod
    def check_call(self, node: ast.Call) -> Expr | None:
        """Check a call."""

    def check_subscript(self, node: ast.Subscript) -> Expr | None:
        """Refuse an element."""
        self.refuse(node.span, "the elements of a tensor")
        return None

    @abstractmethod
    def refuse(self, span: Span, what: str, symbol: Symbol | None = None) -> None:
        """Record something that can't be used here, and where it is declared."""

    def check(self, node: ast.Expr) -> Expr | None:
        """Return the typed expression."""
        match node:
            case ast.Number(value=value):
                return self._number(node.span, value)
            case ast.Boolean(value=value):
                return Constant(value, Scalar.BOOL)
            case ast.Name() if is_infinity(self.env, self.scope, node):
                return INFINITY
            case ast.Name():
                return self.check_name(node)
            case ast.Call():
                return self.check_call(node)
            case ast.Member():
                return self.check_member(node)
            case ast.Unary():
                return self._unary(node)
            case ast.Binary():
                return self._binary(node)
            case ast.Conditional():
                return self._conditional(node)
            case ast.Subscript():
                return self.check_subscript(node)
            case ast.Reduction():
                self.refuse(node.span, "a reduction")
                return None
            case _:
                assert_never(node)

    def _number(self, span: Span, value: float) -> Expr | None:
        _, highest = bounds(Scalar.I32)
        want = Scalar.U32 if value > highest else None
        return literal(self.env.faults, span, value, want)

    def _unary(self, node: ast.Unary) -> Expr | None:
        if node.op == "not":
            operand = self._condition(node.operand)
            return operand and Unary("not", operand, Scalar.BOOL)
        if node.op == "-" and isinstance(node.operand, ast.Number):
            return literal(self.env.faults, node.span, -node.operand.value, None)
        operand = self.check(node.operand)
        if operand is None or not self._accepts(node.op, node.operand, operand):
            return None
        return Unary(node.op, operand, shared_type(operand))

    def _binary(self, node: ast.Binary) -> Expr | None:
        if node.op in _LOGIC:
            left, right = self._condition(node.left), self._condition(node.right)
            return left and right and Binary(node.op, left, right, Scalar.BOOL)
        left, right = self.check(node.left), self.check(node.right)
        if left is None or right is None:
            return None
        sides = (node.left, left), (node.right, right)
        if not all(self._accepts(node.op, *side) for side in sides):
            return None
        if self._divides_by_zero(node, right):
            return None
        compares = node.op in _EQUALITY or node.op in _ORDER
        type_ = Scalar.BOOL if compares else shared_type(left, right)
        return Binary(node.op, left, right, type_)

    def _divides_by_zero(self, node: ast.Binary, divisor: Expr) -> bool:
        return node.op in {"/", "%"} and self._is_zero(node.right, divisor, node.op)

    def _is_zero(self, node: ast.Expr, divisor: Expr, operator: str) -> bool:
        if constant_value(divisor) != 0:
            return False
        self.env.faults.add(DivisionByZero(span=node.span, operator=operator))
        return True

    def floored(self, node: ast.Call) -> Expr | None:
        """Return a call of 'mod' or 'floor_div', of two integers."""
        name = node.function.name
        values = [self.check(argument) for argument in node.arguments]
        sides = [
            (argument, value)
            for argument, value in zip(node.arguments, values, strict=True)
            if value is not None and self._accepts(name, argument, value)
        ]
        if len(sides) < len(values) or self._is_zero(*sides[1], name):
            return None
        return BuiltinCall(name, tuple(value for _, value in sides), Scalar.I32)

    def _conditional(self, node: ast.Conditional) -> Expr | None:
        condition = self._condition(node.condition)
        then, otherwise = self.check(node.then), self.check(node.otherwise)
        if condition is None or then is None or otherwise is None:
            return None
        sides = (node.then, then), (node.otherwise, otherwise)
        if not all(self._accepts("if", *side) for side in sides):
            return None
        return Select(condition, then, otherwise, shared_type(then, otherwise))

    def _condition(self, node: ast.Expr) -> Expr | None:
        value = self.check(node)
        if value is None or value.type is Scalar.BOOL:
            return value
        text = one_line(node.span.text)
        self.env.faults.add(
            ConditionType(span=node.span, actual=value.type.spelling, text=text)
        )
        return None

    def _accepts(self, op: str, node: ast.Expr, value: Expr) -> bool:
        integers = op in _ON_INTEGERS or op == "~" or op in TRUNCATING
        if value.type.is_integer or (value.type is Scalar.F32 and not integers):
            return True
        self.env.faults.add(
            OperandType(
                span=node.span,
                operator=op,
                accepted="integers" if integers else "numbers",
                actual=value.type.spelling,
                remedy=(
                    f"It is true or false by itself: write '{one_line(node.span.text)}'."
                    if op in _ORDER
                    else conversion(node, value.type, Scalar.I32)
                ),
            )
        )
        return False


def shared_type(*values: Expr) -> Scalar:
    """Return the type of an operation on numbers: F32 if any of them is, else I32."""
    return Scalar.F32 if any(v.type is Scalar.F32 for v in values) else Scalar.I32
