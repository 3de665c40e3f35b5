"""Hosts: scalars that are computed on the host, once per call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.check.calls import check_count, report_cast
from kerngen.check.environment import Environment, Signature
from kerngen.check.expressions import Expressions
from kerngen.check.faults_statements import HostReads, HostType
from kerngen.check.faults_types import BuiltinArguments, NotFinite
from kerngen.check.free_mixing import FreeMixing, shared_type
from kerngen.check.scope import (
    FaultySymbol,
    ParameterSymbol,
    Scope,
    Symbol,
    ValueSymbol,
)
from kerngen.check.unknown import report_unknown
from kerngen.check.unknown_calls import report_unknown_function
from kerngen.ir.builtins.evaluate import NotFiniteError, constant_value
from kerngen.ir.builtins.table import BUILTINS, Builtin, Overload
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import (
    BuiltinCall,
    Cast,
    Constant,
    Expr,
    FunctionCall,
    Load,
    Part,
    UniformValue,
)
from kerngen.ir.operators import is_composite
from kerngen.ir.types import CASTS, COMPOSITES, Scalar
from kerngen.ir.walk import places_in, subscript_value, walk
from kerngen.source.text import Span
from kerngen.syntax import ast

_PER_INDEX = "A host is one number; a 'let' has one per index: 'let t[i < n] = ...;'."


def check_host(env: Environment, scope: Scope, node: ast.Expr) -> Expr | None:
    """Return the value of a host."""
    value = HostExpressions(env, scope).check(node)
    if value is None:
        return None
    if value.type is Scalar.BOOL:
        env.faults.add(HostType(span=node.span))
        return None
    try:
        constant_value(value)
    except NotFiniteError:
        env.faults.add(NotFinite(span=node.span, type="f32"))
        return None
    return value if value.type is not Scalar.U32 else Cast(value, Scalar.I32)


def _root(node: ast.Expr) -> str:
    """Return the name that a chain of members starts at, if it is one."""
    while isinstance(node, ast.Member | ast.Subscript):
        node = node.base
    return node.name if isinstance(node, ast.Name) else ""


def _is_parameter(scope: Scope, name: str) -> bool:
    return isinstance(scope.get(name), ParameterSymbol)


def _is_fixed(expr: Expr) -> bool:
    """Whether an expression reads parts of parameters by literals alone."""
    match expr:
        case UniformValue(path=path):
            places = places_in(path)
        case Part(at=at):
            places = places_in((at,))
        case Load():
            return False
        case _:
            return True
    return all(isinstance(subscript_value(place), Constant) for place in places)


@final
@dataclass(frozen=True)
class HostExpressions(FreeMixing):
    """Expressions over dims, scalars, constants and earlier hosts."""

    def refuse(self, span: Span, what: str, symbol: Symbol | None = None) -> None:
        """Record something that the host does not know."""
        self.env.faults.add(
            HostReads(span=span, what=what, declared=symbol.span if symbol else None)
        )

    def check_name(self, node: ast.Name) -> Expr | None:
        """Return a dim, scalar, constant or earlier host."""
        symbol = self.scope.get(node.name)
        match symbol:
            case ValueSymbol(value=value):
                return value
            case None:
                otherwise = _PER_INDEX if len(node.name) == 1 else ""
                report_unknown(self.env, self.scope, node, otherwise)
            case FaultySymbol():
                pass
            case _:
                self.refuse(node.span, f"'{node.name}', {symbol.kind}", symbol)
        return None

    def check_member(self, node: ast.Member) -> Expr | None:
        """Return a part of a parameter."""
        return self._part(node)

    def check_subscript(self, node: ast.Subscript) -> Expr | None:
        """Return an element of an array in a parameter, by a literal."""
        if _is_parameter(self.scope, _root(node)):
            return self._part(node)
        return super().check_subscript(node)

    def _part(self, node: ast.Member | ast.Subscript) -> Expr | None:
        value = Expressions(self.env, self.scope).check(node)
        if value is None or all(_is_fixed(part) for part in walk(value)):
            return value
        self.refuse(node.span, "an element by a number that varies")
        return None

    def check_call(self, node: ast.Call) -> Expr | None:
        """Return a cast, or a call of a built-in or function."""
        name = node.function.name
        strict = Expressions(self.env, self.scope)
        if name in CASTS:
            if not check_count(strict, node, 1):
                return None
            value = self.check(node.arguments[0])
            if value is not None and is_composite(value.type):
                report_cast(strict, node.arguments[0], value, CASTS[name])
                return None
            return value and Cast(value, CASTS[name])
        if name in self.env.functions:
            return self._function(node, self.env.functions[name])
        if name in BUILTINS:
            return self._builtin(node, BUILTINS[name])
        if name in GEOMETRY or name in COMPOSITES:
            self.refuse(node.function.span, f"'{name}', which computes with vectors")
            return None
        report_unknown_function(strict, node)
        return None

    def _arguments(self, node: ast.Call, count: int) -> tuple[Expr, ...] | None:
        strict = Expressions(self.env, self.scope)
        if not check_count(strict, node, count):
            return None
        values = [self.check(argument) for argument in node.arguments]
        known = tuple(value for value in values if value is not None)
        return known if len(known) == count else None

    def _function(self, node: ast.Call, signature: Signature) -> Expr | None:
        """Convert the arguments to what the function takes."""
        values = self._arguments(node, len(signature.parameters))
        wanted = [p.type for p in signature.parameters]
        if values is None or signature.result is None:
            return None
        converted = tuple(
            Cast(value, scalar) if scalar and scalar is not value.type else value
            for value, scalar in zip(values, wanted, strict=True)
        )
        return FunctionCall(signature.name, converted, signature.result)

    def _builtin(self, node: ast.Call, builtin: Builtin) -> Expr | None:
        values = self._arguments(node, builtin.arity)
        if values is None:
            return None
        overload = _choose(builtin, values)
        if overload is not None:
            result = overload.result
            integer = Scalar.I32 if result.is_integer else result
            return BuiltinCall(builtin.name, values, integer)
        actual = ", ".join(value.type.spelling for value in values)
        accepted = " or ".join(
            f"({', '.join(scalar.spelling for scalar in overload.parameters)})"
            for overload in builtin.overloads
        )
        self.env.faults.add(
            BuiltinArguments(
                span=node.span,
                function=builtin.name,
                actual=actual,
                accepted=accepted,
                remedy="",
            )
        )
        return None


def _choose(builtin: Builtin, values: tuple[Expr, ...]) -> Overload | None:
    """Return the integer overload for integers alone, else that of f32."""

    def fits(value: Expr, wanted: Scalar) -> bool:
        if Scalar.BOOL in (wanted, value.type):
            return wanted is value.type
        return wanted is Scalar.F32 or value.type.is_integer

    numbers = [value for value in values if value.type is not Scalar.BOOL]
    preferred = shared_type(*numbers)
    fitting = [
        overload
        for overload in builtin.overloads
        if all(map(fits, values, overload.parameters))
    ]
    for overload in fitting:
        if overload.result is preferred:
            return overload
    return fitting[0] if fitting else None
