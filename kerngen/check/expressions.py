"""Expressions of kernels, functions and constants: syntax to typed IR.

A faulty expression is None; its fault is recorded once, where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never, final

from kerngen.check import faults_indices, faults_names, faults_types
from kerngen.check.calls import check_call
from kerngen.check.environment import Environment
from kerngen.check.faults_statements import FunctionReads, ReadBeforeWrite
from kerngen.check.faults_unsupported import SwizzleUnsupported
from kerngen.check.literals import flexible, literal
from kerngen.check.remedies import conversion, unification
from kerngen.check.scope import (
    FaultySymbol,
    IndexSymbol,
    Scope,
    Symbol,
    TensorSymbol,
    ValueSymbol,
    VectorSymbol,
    closest,
    one_line,
)
from kerngen.check.subscripts import bind_indices, check_subscripts
from kerngen.ir.evaluate import NotFiniteError
from kerngen.ir.fold import fold
from kerngen.ir.nodes import (
    Binary,
    Constant,
    Expr,
    IndexValue,
    Load,
    Reduce,
    Role,
    Select,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.source.text import Span
from kerngen.syntax import ast

_LOGIC = frozenset({"and", "or"})
_SHIFTS = frozenset({"<<", ">>"})
_EQUALITY = frozenset({"==", "!="})
_ORDER = frozenset({"<", "<=", ">", ">="})
_ON_BITS = frozenset({"&", "|", "^"})
_COMPONENTS = {letter: "xyzw"[n % 4] for n, letter in enumerate("xyzwrgba")}


@final
@dataclass(frozen=True)
class Expressions:
    """Checks expressions in one scope."""

    env: Environment
    scope: Scope

    def check(self, node: ast.Expr, want: Scalar | None = None) -> Expr | None:
        """Return the typed expression; literals take the type `want`."""
        match node:
            case ast.Number(value=value):
                return literal(self.env.faults, node.span, value, want)
            case ast.Boolean(value=value):
                return Constant(value, Scalar.BOOL)
            case ast.Name():
                return self._name(node)
            case ast.Call():
                return check_call(self, node, want)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Member():
                return self._member(node)
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

    def check_as(self, node: ast.Expr, want: Scalar, place: str) -> Expr | None:
        """Return the expression if it has the type that its place asks for."""
        value = self.check(node, want)
        if value is None or value.type is want:
            return value
        self.env.faults.add(
            faults_types.TypeMismatch(
                span=node.span,
                place=place,
                expected=want.spelling,
                actual=value.type.spelling,
                remedy=conversion(node, value.type, want),
            )
        )
        return None

    def check_together(
        self, nodes: tuple[ast.Expr, ...], want: Scalar | None
    ) -> list[Expr | None]:
        """Check operands that share a type: literals take that of the others."""
        kinds = [flexible(node) for node in nodes]
        typed = {
            n: self.check(node, want)
            for n, (node, kind) in enumerate(zip(nodes, kinds, strict=True))
            if kind is None
        }
        shared = next((value.type for value in typed.values() if value), None)
        if shared is None or shared is Scalar.BOOL:
            numeric = want if want is not None and want.is_numeric else Scalar.I32
            shared = Scalar.F32 if Scalar.F32 in kinds else numeric
        return [
            typed[n] if n in typed else self.check(node, shared)
            for n, node in enumerate(nodes)
        ]

    def finish(self, expr: Expr, span: Span) -> Expr | None:
        """Fold the top of an expression."""
        try:
            return fold(expr)
        except NotFiniteError:
            fault = faults_types.NotFinite(span=span, type=expr.type.spelling)
            self.env.faults.add(fault)
            return None

    # Names

    def _name(self, node: ast.Name) -> Expr | None:
        symbol = self.scope.get(node.name)
        match symbol:
            case None:
                self.report_unknown(node)
                return None
            case ValueSymbol(value=value):
                return value
            case IndexSymbol(index=index):
                return IndexValue(index)
            case TensorSymbol():
                return self._read(symbol, node, ())
            case VectorSymbol(name=name, type=type_):
                self.env.faults.add(
                    faults_types.VectorAsValue(
                        span=node.span, name=name, type=type_.spelling
                    )
                )
                return None
            case FaultySymbol():
                return None
            case _:
                assert_never(symbol)

    def report_unknown(self, node: ast.Name) -> None:
        """Record a name that stands for nothing; once per place of definition."""
        name, env = node.name, self.env
        if name in env.reported or name in env.unbound:
            return
        if name in env.later:
            fault = faults_names.UsedBeforeDefinition(
                span=node.span, other=env.later[name], name=name
            )
            env.faults.add(fault)
        elif name in env.bound or name in env.indices:
            env.faults.add(faults_indices.IndexAsValue(span=node.span, name=name))
            return
        else:
            suggestion = closest(name, self.scope.names())
            env.faults.add(
                faults_names.UnknownName(
                    span=node.span, name=name, suggestion=suggestion
                )
            )
        env.reported.add(name)

    def _member(self, node: ast.Member) -> Expr | None:
        base, member = node.base, node.member
        symbol = self.scope.get(base.name) if isinstance(base, ast.Name) else None
        if not isinstance(symbol, VectorSymbol):
            self._report_member(node, symbol)
            return None
        components = "xyzw"[: symbol.type.width]
        if _COMPONENTS.get(member.name, "?") in components:
            component = _COMPONENTS[member.name]
            return UniformValue(symbol.name, symbol.type.scalar, component)
        if 1 < len(member.name) <= 4 and set(member.name) <= set(_COMPONENTS):
            self.env.faults.add(
                SwizzleUnsupported(
                    span=member.span, base=symbol.name, member=member.name
                )
            )
            return None
        self.env.faults.add(
            faults_names.UnknownMember(
                span=member.span,
                type=symbol.type.spelling,
                member=member.name,
                components=", ".join(f"'{letter}'" for letter in components),
            )
        )
        return None

    def _report_member(self, node: ast.Member, symbol: Symbol | None) -> None:
        base = node.base
        if isinstance(base, ast.Name):
            if symbol is None:
                self.report_unknown(base)
                return
            if isinstance(symbol, FaultySymbol):
                return
        elif self.check(base) is None:
            return
        self.env.faults.add(
            faults_names.MemberOfScalar(
                span=node.member.span,
                base=one_line(base.span.text),
                kind=symbol.kind if symbol else "a value",
            )
        )

    # Tensors

    def _subscript(self, node: ast.Subscript) -> Expr | None:
        base = node.base
        if self.env.place != "kernel":
            self.env.faults.add(FunctionReads(span=node.span, what="a tensor"))
            return None
        symbol = self.scope.get(base.name) if isinstance(base, ast.Name) else None
        if isinstance(base, ast.Name) and isinstance(symbol, TensorSymbol):
            return self._read(symbol, node, node.subscripts)
        for subscript in node.subscripts:
            if not isinstance(subscript, ast.Name):
                self.check(subscript)
        if isinstance(base, ast.Name) and symbol is None:
            self.report_unknown(base)
        elif not isinstance(symbol, FaultySymbol) and (symbol or self.check(base)):
            self._report_not_subscriptable(node, symbol)
        return None

    def _report_not_subscriptable(
        self, node: ast.Subscript, symbol: Symbol | None
    ) -> None:
        remedy = ""
        if isinstance(node.base, ast.Subscript):
            remedy = "All subscripts stand in one pair of brackets: 'x[i, j]'."
        self.env.faults.add(
            faults_indices.NotSubscriptable(
                span=node.span,
                text=one_line(node.base.span.text),
                kind=symbol.kind if symbol else "a value",
                remedy=remedy,
            )
        )

    def _read(
        self, symbol: TensorSymbol, node: ast.Expr, subscripts: tuple[ast.Expr, ...]
    ) -> Expr | None:
        """Check a read of one element."""
        tensor = symbol.tensor
        if tensor.role is Role.OUTPUT and tensor.name not in self.env.written:
            fault = ReadBeforeWrite(span=node.span, other=symbol.span, name=tensor.name)
            self.env.faults.add(fault)
        places = check_subscripts(self, symbol, node.span, subscripts)
        return None if places is None else Load(tensor, places)

    # Operators

    def _unary(self, node: ast.Unary, want: Scalar | None) -> Expr | None:
        if node.op == "not":
            operand = self.check_condition(node.operand)
            return None if operand is None else Unary("not", operand, Scalar.BOOL)
        if node.op == "-" and isinstance(node.operand, ast.Number):
            value = node.operand.value
            return literal(self.env.faults, node.span, -value, want)
        operand = self.check(node.operand, want)
        if operand is None:
            return None
        accepted = (
            (Scalar.F32, Scalar.I32) if node.op == "-" else (Scalar.I32, Scalar.U32)
        )
        if not self._accepts(node.op, node.operand, operand.type, accepted):
            return None
        return self.finish(Unary(node.op, operand, operand.type), node.span)

    def _accepts(
        self,
        operator: str,
        node: ast.Expr,
        actual: Scalar,
        accepted: tuple[Scalar, ...],
    ) -> bool:
        """Whether an operator works on a type; if not, that is a fault."""
        if actual in accepted:
            return True
        *first, last = (f"'{scalar.spelling}'" for scalar in accepted)
        self.env.faults.add(
            faults_types.OperandType(
                span=node.span,
                operator=operator,
                accepted=f"{', '.join(first)} and {last}" if first else last,
                actual=actual.spelling,
                remedy=conversion(node, actual, accepted[0]),
            )
        )
        return False

    def check_condition(self, node: ast.Expr) -> Expr | None:
        """Check an expression that is true or false."""
        value = self.check(node)
        if value is None or value.type is Scalar.BOOL:
            return value
        self.env.faults.add(
            faults_types.ConditionType(
                span=node.span,
                actual=value.type.spelling,
                text=one_line(node.span.text),
            )
        )
        return None

    def _binary(self, node: ast.Binary, want: Scalar | None) -> Expr | None:
        if node.op in _LOGIC:
            left = self.check_condition(node.left)
            right = self.check_condition(node.right)
            if left is None or right is None:
                return None
            return Binary(node.op, left, right, Scalar.BOOL)
        if node.op in _SHIFTS:
            return self._shift(node, want)
        compares = node.op in _EQUALITY or node.op in _ORDER
        sides = (node.left, node.right)
        left, right = self.check_together(sides, None if compares else want)
        if left is None or right is None:
            return None
        if not self.same_type(
            node.op, node.span, (node.left, left), (node.right, right)
        ):
            return None
        accepted = tuple(Scalar) if node.op in _EQUALITY else _accepted(node.op)
        if not self._accepts(node.op, node.left, left.type, accepted):
            return None
        type_ = Scalar.BOOL if compares else left.type
        return self.finish(Binary(node.op, left, right, type_), node.span)

    def same_type(
        self,
        what: str,
        span: Span,
        first: tuple[ast.Expr, Expr],
        second: tuple[ast.Expr, Expr],
    ) -> bool:
        """Whether two operands have one type; if not, that is a fault."""
        (left_node, left), (right_node, right) = first, second
        if left.type is right.type:
            return True
        self.env.faults.add(
            faults_types.MixedTypes(
                span=span,
                what=what,
                left=left.type.spelling,
                right=right.type.spelling,
                left_span=left_node.span,
                right_span=right_node.span,
                remedy=unification((left_node, left.type), (right_node, right.type)),
            )
        )
        return False

    def _shift(self, node: ast.Binary, want: Scalar | None) -> Expr | None:
        left = self.check(node.left, want)
        right = self.check_as(node.right, Scalar.U32, "A shift count")
        if left is None or right is None:
            return None
        if not self._accepts(node.op, node.left, left.type, _accepted("&")):
            return None
        return self.finish(Binary(node.op, left, right, left.type), node.span)

    def _conditional(self, node: ast.Conditional, want: Scalar | None) -> Expr | None:
        condition = self.check_condition(node.condition)
        branches = (node.then, node.otherwise)
        then, otherwise = self.check_together(branches, want)
        if condition is None or then is None or otherwise is None:
            return None
        sides = (node.then, then), (node.otherwise, otherwise)
        if not self.same_type("if", node.span, *sides):
            return None
        return self.finish(Select(condition, then, otherwise, then.type), node.span)

    def _reduction(self, node: ast.Reduction, want: Scalar | None) -> Expr | None:
        if self.env.place != "kernel":
            self.env.faults.add(FunctionReads(span=node.span, what="a reduction"))
            return None
        inner = replace(self, scope=Scope(self.env.faults, self.scope))
        self.env.bound.update(binder.name.name for binder in node.binders)
        with bind_indices(inner, node.binders, node.body) as indices:
            body = inner.check(node.body, want)
        if body is None or indices is None:
            return None
        numbers = (Scalar.F32, Scalar.I32, Scalar.U32)
        if not self._accepts(node.kind, node.body, body.type, numbers):
            return None
        return Reduce(node.kind, indices, body, body.type)


def _accepted(op: str) -> tuple[Scalar, ...]:
    """Return the types that an operator works on."""
    if op in _ON_BITS:
        return (Scalar.I32, Scalar.U32)
    return (Scalar.F32, Scalar.I32, Scalar.U32)
