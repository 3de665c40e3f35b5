"""The checker of expressions: from syntax to typed IR, by the rules of their place.

A faulty expression is None; its fault is recorded once, where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never, final

from kerngen.check.environment import Environment
from kerngen.check.expressions.composites import check_composite
from kerngen.check.expressions.index_ranges import bind_indices
from kerngen.check.expressions.infinity import INFINITY, is_infinity
from kerngen.check.expressions.literals import literal, overflows
from kerngen.check.expressions.mixing import mixed_type
from kerngen.check.expressions.rules import Rules
from kerngen.check.faults.indices import PlaceOfSeveral
from kerngen.check.faults.types import (
    ConditionType,
    MixedTypes,
    NotFinite,
    OperandType,
    TypeMismatch,
)
from kerngen.check.hints.conversions import MEANT_BY_OPERATOR, conversion, unification
from kerngen.check.scope import Scope, one_line
from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.builtins.evaluate import NotFiniteError, bounds
from kerngen.ir.fold import fold
from kerngen.ir.nodes import Binary, Constant, Expr, Reduce, Select, Unary
from kerngen.ir.operators import is_composite
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.source.text import Span
from kerngen.syntax import ast

_LOGIC = frozenset({"and", "or"})
_SHIFTS = frozenset({"<<", ">>"})
_EQUALITY = frozenset({"==", "!="})
_ORDER = frozenset({"<", "<=", ">", ">="})
_ON_BITS = frozenset({"&", "|", "^"})


_NUMBERS = (Scalar.F32, Scalar.I32, Scalar.U32)
_INTEGERS = (Scalar.I32, Scalar.U32)
_SIGNED = (Scalar.F32, Scalar.I32)


@final
@dataclass(frozen=True)
class Expressions:
    """Checks expressions in one scope, by the rules of their place.

    Subscripts are clamped where a condition may guard them: `in_branch` of an `if`, or
    behind `and` or `or`; `guards` are the conditions.
    """

    env: Environment
    scope: Scope
    rules: Rules
    in_branch: bool = False
    guards: tuple[ast.Expr, ...] = ()

    def check(self, node: ast.Expr, want: Scalar | None = None) -> Expr | None:
        """Return the typed expression; literals take the type `want`."""
        value = self._judge(node, want)
        self.env.model.add(self.scope, node, value)
        return value

    def _judge(self, node: ast.Expr, want: Scalar | None) -> Expr | None:
        match node:
            case ast.Number(value=value):
                return self._literal(node.span, value, want)
            case ast.Boolean(value=value):
                return Constant(value, Scalar.BOOL)
            case ast.Name() if is_infinity(self.env, self.scope, node):
                return INFINITY
            case ast.Name():
                return self.rules.name(self, node)
            case ast.Call():
                return self.rules.call(self, node, want)
            case ast.Subscript():
                return self.rules.subscript(self, node)
            case ast.Member():
                return self.rules.member(self, node)
            case ast.Unary():
                return self._unary(node, want)
            case ast.Binary():
                return self._binary(node, want)
            case ast.Conditional():
                return self._conditional(node, want)
            case ast.Reduction():
                return self._reduction(node, want)
            case _:
                assert_never(node)

    def under(self, rules: Rules) -> Expressions:
        """Return what checks expressions in the same scope by other rules."""
        return replace(self, rules=rules)

    def _literal(self, span: Span, value: float, want: Scalar | None) -> Expr | None:
        if self.rules.mixes:
            is_large = value > bounds(Scalar.I32)[1]
            want = Scalar.U32 if is_large else None
        return literal(self.env.faults, span, value, want)

    def check_as(
        self, node: ast.Expr, want: ValueType, place: str, declared: Span | None = None
    ) -> Expr | None:
        """Return the expression if it has the type that its place asks for.

        `declared` is where that type is written.
        """
        value = self.check(node, scalar_of(want))
        if value is None or value.type == want:
            return value
        self.report_mismatch(node, value, want, place, declared)
        return None

    def report_mismatch(
        self,
        node: ast.Expr,
        value: Expr,
        want: ValueType,
        place: str,
        declared: Span | None = None,
    ) -> None:
        """Record a value of another type than its place asks for."""
        self.env.faults.add(
            TypeMismatch(
                span=node.span,
                declared=declared,
                place=place,
                expected=want.spelling,
                actual=value.type.spelling,
                remedy=conversion(node, value.type, want),
            )
        )

    def check_together(
        self, nodes: tuple[ast.Expr, ...], want: Scalar | None
    ) -> list[Expr | None]:
        """Check operands that share a type: literals take that of the others."""
        if self.rules.mixes:
            return [self.check(node) for node in nodes]
        kinds = [self.env.kinds.flexible(node) for node in nodes]
        typed = {
            n: self.check(node, want)
            for n, (node, kind) in enumerate(zip(nodes, kinds, strict=True))
            if kind is None
        }
        shared = next((value.type for value in typed.values() if value), None)
        if shared is None or shared is Scalar.BOOL:
            numeric = want if want is not None and want.is_numeric else Scalar.I32
            shared = Scalar.F32 if Scalar.F32 in kinds else numeric
        scalar = scalar_of(shared)
        return [
            typed[n] if n in typed else self.check(node, scalar)
            for n, node in enumerate(nodes)
        ]

    def finish(self, expr: Expr, span: Span) -> Expr | None:
        """Fold the top of an expression; what is constant must not overflow."""
        if self.rules.mixes:
            return expr
        if self.rules.must_fit and overflows(self.env.faults, span, expr):
            return None
        try:
            return fold(expr)
        except NotFiniteError:
            fault = NotFinite(span=span, type=expr.type.spelling)
            self.env.faults.add(fault)
            return None

    # Operators

    def _unary(self, node: ast.Unary, want: Scalar | None) -> Expr | None:
        if node.op == "not":
            operand = self.condition(node.operand)
            return operand and Unary("not", operand, Scalar.BOOL)
        if node.op == "-" and isinstance(node.operand, ast.Number):
            return self._literal(node.span, -node.operand.value, want)
        operand = self.check(node.operand, want)
        if operand is None:
            return None
        if self.rules.mixes:
            mixed = mixed_type(self, node.op, (node.operand, operand))
            return mixed and Unary(node.op, operand, mixed)
        accepted = _SIGNED if node.op == "-" else _INTEGERS
        if not self._accepts(f"{node.op}x", node.operand, operand.type, accepted):
            return None
        return self.finish(Unary(node.op, operand, operand.type), node.span)

    def _accepts(
        self,
        operator: str,
        node: ast.Expr,
        actual: ValueType,
        accepted: tuple[Scalar, ...],
        want: Scalar | None = None,
    ) -> bool:
        """Whether an operator works on a type or its components; else a fault."""
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
        self.env.faults.add(
            OperandType(
                span=node.span,
                operator=operator,
                accepted=f"{', '.join(first)} and {last}" if first else last,
                actual=actual.spelling,
                remedy=MEANT_BY_OPERATOR.get((operator, actual))
                or conversion(node, actual, like),
            )
        )
        return False

    def guarded(self, condition: ast.Expr) -> Expressions:
        """Return what checks expressions that a condition may guard."""
        return replace(self, in_branch=True, guards=(*self.guards, condition))

    def condition(self, node: ast.Expr, guard: ast.Expr | None = None) -> Expr | None:
        """Check an expression that is true or false; another one may guard it."""
        inner = self.guarded(guard) if guard else self
        value = inner.check(node)
        if value is None or value.type is Scalar.BOOL:
            return value
        text = one_line(node.span.text)
        self.env.faults.add(
            ConditionType(
                span=node.span,
                actual=value.type.spelling,
                text=f"{text}.x" if is_composite(value.type) else text,
            )
        )
        return None

    def _binary(self, node: ast.Binary, want: Scalar | None) -> Expr | None:
        if node.op in _LOGIC:
            left = self.condition(node.left)
            right = self.condition(node.right, guard=node.left)
            return left and right and Binary(node.op, left, right, Scalar.BOOL)
        if node.op in _SHIFTS and not self.rules.mixes:
            return self._shift(node, want)
        compares = node.op in _EQUALITY or node.op in _ORDER
        sides = (node.left, node.right)
        wanted = None if compares else want
        left, right = self.check_together(sides, wanted)
        if left is None or right is None:
            return None
        operands = (node.left, left), (node.right, right)
        if self.rules.mixes:
            mixed = mixed_type(self, node.op, *operands)
            result = Scalar.BOOL if compares else mixed
            return mixed and result and Binary(node.op, left, right, result)
        if is_composite(left.type) or is_composite(right.type):
            return check_composite(self, node, left, right)
        if not self._one_type(node.op, node, *operands, want=wanted):
            return None
        accepted: tuple[Scalar, ...] = _NUMBERS
        if node.op in _EQUALITY:
            accepted = tuple(Scalar)
        elif node.op in _ON_BITS:
            accepted = _INTEGERS
        if not self._accepts(node.op, node.left, left.type, accepted):
            return None
        type_ = Scalar.BOOL if compares else left.type
        return self.finish(Binary(node.op, left, right, type_), node.span)

    def _one_type(
        self,
        what: str,
        node: ast.Expr,
        first: tuple[ast.Expr, Expr],
        second: tuple[ast.Expr, Expr],
        *,
        want: Scalar | None = None,
    ) -> bool:
        """Whether two operands have one type; if not, that is a fault."""
        (left_node, left), (right_node, right) = first, second
        if left.type == right.type:
            return True
        self.env.faults.add(
            MixedTypes(
                span=node.span,
                what=what,
                left=left.type.spelling,
                right=right.type.spelling,
                left_span=left_node.span,
                right_span=right_node.span,
                remedy=unification(
                    (left_node, left.type), (right_node, right.type), want
                ),
            )
        )
        return False

    def _shift(self, node: ast.Binary, want: Scalar | None) -> Expr | None:
        left = self.check(node.left, want)
        if left is not None and isinstance(left.type, Vector):
            counts = self.check(node.right, Scalar.U32)
            return counts and check_composite(self, node, left, counts)
        right = self.check_as(node.right, Scalar.U32, "A shift count")
        if left is None or right is None:
            return None
        if not self._accepts(node.op, node.left, left.type, _INTEGERS):
            return None
        return self.finish(Binary(node.op, left, right, left.type), node.span)

    def _conditional(self, node: ast.Conditional, want: Scalar | None) -> Expr | None:
        condition = self.condition(node.condition)
        branches = (node.then, node.otherwise)
        inner = self.guarded(node.condition)
        then, otherwise = inner.check_together(branches, want)
        if condition is None or then is None or otherwise is None:
            return None
        sides = (node.then, then), (node.otherwise, otherwise)
        if self.rules.mixes:
            mixed = mixed_type(self, "if", *sides)
            return mixed and Select(condition, then, otherwise, mixed)
        if not self._one_type("if", node, *sides, want=want):
            return None
        return self.finish(Select(condition, then, otherwise, then.type), node.span)

    def _reduction(self, node: ast.Reduction, want: Scalar | None) -> Expr | None:
        if not self.rules.has_elements:
            self.rules.refuse(self, node.span, "a reduction")
            return None
        inner = replace(self, scope=Scope(self.env.faults, self.scope))
        with bind_indices(inner, node.binders, node.terms, node.kind) as indices:
            condition = node.condition and inner.condition(node.condition)
            terms = inner.guarded(node.condition) if node.condition else inner
            finds_place = node.kind in {"argmax", "argmin"}
            body = terms.check(node.body, None if finds_place else want)
        if body is None or indices is None or (node.condition and condition is None):
            return None
        if finds_place:
            return self._place(
                node, Reduce(node.kind, indices, body, Scalar.I32, condition)
            )
        if isinstance(body.type, Matrix) and node.kind != "sum":
            self._report_matrices(node, body.type)
            return None
        if not self._accepts(node.kind, node.body, body.type, _NUMBERS, want):
            return None
        return conditional(Reduce(node.kind, indices, body, body.type, condition))

    def _place(self, node: ast.Reduction, reduce: Reduce) -> Expr | None:
        """Check what finds the place of a greatest or least number."""
        if len(reduce.indices) > 1:
            self.env.faults.add(
                PlaceOfSeveral(
                    span=node.binders[1].name.span,
                    kind=node.kind,
                    names=tuple(index.name for index in reduce.indices),
                    of=node.kind.removeprefix("arg"),
                )
            )
            return None
        if not isinstance(reduce.body.type, Scalar):
            self.env.faults.add(
                OperandType(
                    span=node.body.span,
                    operator=node.kind,
                    accepted="numbers",
                    actual=reduce.body.type.spelling,
                    remedy="Choose a number of each, such as a component or its length.",
                )
            )
            return None
        accepted = self._accepts(node.kind, node.body, reduce.body.type, _NUMBERS)
        return reduce if accepted else None

    def _report_matrices(self, node: ast.Reduction, type_: Matrix) -> None:
        """Record a reduction of matrices that is no sum: WGSL has none either."""
        text = one_line(node.body.span.text)
        if not isinstance(node.body, ast.Name | ast.Member | ast.Subscript):
            text = f"({text})"
        self.env.faults.add(
            OperandType(
                span=node.body.span,
                operator=node.kind,
                accepted="numbers and vectors",
                actual=type_.spelling,
                remedy=f"Take a column of each: '{text}[0]'.",
            )
        )
