"""Checking constant expressions: constants, defaults, and numbers in structs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions, complete
from kerngen.check.expressions.rules import CONSTANT, NodeRules
from kerngen.check.items.types import resolve_scalar
from kerngen.check.scope import Poison, Scope, ValueSymbol
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.evaluate import Value, constant_value
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.memory import Leaf, MemoryType
from kerngen.ir.nodes import Expr
from kerngen.ir.types import CASTS, VECTORS, Scalar, Vector
from kerngen.ir.walk import walk
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest, did_you_mean
from kerngen.source.text import Span
from kerngen.syntax import ast


def check_constants(
    of_file: Environment, items: list[ast.ConstItem], scope: Scope
) -> dict[str, ValueSymbol]:
    """Declare a file's constants in `scope`, each with its value; return them."""
    declared: dict[str, ValueSymbol] = {}
    later = {item.name.name: item.name.span for item in items}
    env = of_file.begin(later)
    for item in items:
        type_ = resolve_scalar(env.faults, item.type, "A constant")
        value = None
        if type_ is not None:
            value = _constant(env, scope, item.value, type_, "The value of a constant")
        later.pop(item.name.name, None)
        span = item.name.span
        if value is None or type_ is None:
            scope.declare(item.name, Poison("a constant", span))
            continue
        reference = ir.ConstRef(item.name.name, value, type_)
        declared[item.name.name] = ValueSymbol("a constant", reference, span)
        scope.declare(item.name, declared[item.name.name])
        env.model.define(span, declared[item.name.name])
    return declared


def check_default(
    env: Environment, scope: Scope, node: ast.Expr, memory: MemoryType
) -> float | int | tuple[float, ...] | None:
    """Return the value of a default; None after a fault."""
    type_ = memory.type if isinstance(memory, Leaf) else memory
    if isinstance(type_, Scalar):
        return _constant(env, scope, node, type_, "A default")
    if not isinstance(type_, Vector):
        env.faults.add(diag.NoDefault(span=node.span, type=type_.spelling))
        return None
    arguments = _components(node, type_)
    if not arguments:
        env.faults.add(
            diag.VectorDefault(
                span=node.span, type=type_.spelling, example=_example(type_)
            )
        )
        return None
    return complete(
        [_constant(env, scope, each, type_.scalar, "A default") for each in arguments]
    )


def _components(node: ast.Expr, type_: Vector) -> tuple[ast.Expr, ...]:
    """Return the components of `vec2f(x, y)`, or of `vec2f(x)` for equal ones."""
    if not isinstance(node, ast.Call) or VECTORS.get(node.function.name) != type_:
        return ()
    if len(node.arguments) == 1:
        return node.arguments * type_.width
    return node.arguments if len(node.arguments) == type_.width else ()


def _example(type_: Vector) -> str:
    zero = "0.0" if type_.scalar is Scalar.F32 else "0"
    return f"{type_.spelling}({', '.join([zero] * type_.width)})"


def _constant(
    env: Environment, scope: Scope, node: ast.Expr, type_: Scalar, place: str
) -> Value | None:
    ex = Expressions(env, scope, CONSTANT)
    value = ex.check(node, type_)
    if value is None:
        return None
    result = constant_value(value)
    if result is None:
        name = _culprit(value, node)
        symbol = scope.get(name)
        declared = symbol.span if symbol else None
        env.faults.add(
            diag.NotConstant(span=node.span, declared=declared, place=place, name=name)
        )
        return None
    if value.type != type_:
        ex.report_mismatch(node, value, type_, place)
        return None
    return float(result) if type_ is Scalar.F32 else result


def _culprit(value: ir.Expr, node: ast.Expr) -> str:
    """Return the name that makes an expression vary: of tensors, only parts are read."""
    for part in walk(value):
        match part:
            case (
                ir.UniformValue(name=name)
                | ir.DimValue(name=name)
                | ir.FunctionCall(function=name)
            ):
                return name
            case _:
                pass
    return node.span.one_line()


ATTRIBUTES: Final = ("align", "size")
_LENGTH: Final = "The length of an array in a struct"


def check_lengths(
    env: Environment, scope: Scope, axes: tuple[ast.Expr, ...], span: Span
) -> tuple[int, ...] | None:
    """Return the lengths of a fixed array, the outermost first, or None after a fault."""
    if not axes:
        remedy = "Write how many elements it has, as in 'f32[16]'."
        fault = diag.NumberNotConstant(
            span=span, place=_LENGTH, what="none is given", remedy=remedy
        )
        env.faults.add(fault)
        return None
    return complete([_length(env, scope, axis) for axis in axes])


def _length(env: Environment, scope: Scope, node: ast.Expr) -> int | None:
    value = _integer(env, scope, node, _LENGTH)
    if value is None or value > 0:
        return value
    env.faults.add(diag.LengthNotPositive(span=node.span, value=value))
    return None


def check_attributes(
    env: Environment, scope: Scope, field: ast.StructField
) -> dict[str, int | None]:
    """Return the values of a field's attributes by name, None for a faulty one."""
    first: dict[str, ast.Attribute] = {}
    values: dict[str, int | None] = {}
    for attribute in field.attributes:
        name = attribute.name
        if name.name not in ATTRIBUTES:
            suggestion = closest(name.name, ATTRIBUTES)
            env.faults.add(diag.UnknownAttribute(span=name.span, suggestion=suggestion))
            values[name.name] = None
        elif name.name in first:
            twice = diag.AttributeTwice(
                span=attribute.span,
                other=first[name.name].span,
                field=field.name.name,
                name=name.name,
            )
            env.faults.add(twice)
        else:
            first[name.name] = attribute
            values[name.name] = _attribute(env, scope, attribute)
    return values


def _attribute(env: Environment, scope: Scope, attribute: ast.Attribute) -> int | None:
    name = attribute.name.name
    value = _integer(env, scope, attribute.value, f"The value of '@{name}'")
    if name == "align" and value is not None and (value < 1 or value & (value - 1)):
        env.faults.add(diag.AlignNotPowerOfTwo(span=attribute.value.span, value=value))
        return None
    return value


def _integer(env: Environment, scope: Scope, node: ast.Expr, place: str) -> int | None:
    """Return the value of a constant integer; None after a fault.

    A literal may be of any size here: a limit that it exceeds is reported in bytes.
    """
    if isinstance(node, ast.Number) and isinstance(node.value, int):
        return node.value
    value = Expressions(env, scope, _NumberRules(place)).check(node)
    if value is None:
        return None
    if value.type not in (Scalar.I32, Scalar.U32):
        actual = value.type.spelling
        env.faults.add(diag.NotAnInteger(span=node.span, place=place, actual=actual))
        return None
    number = constant_value(value)
    assert number is not None, "it reads constants alone"
    return int(number)


@final
@dataclass(frozen=True)
class _NumberRules(NodeRules):
    """The rules of a number in a struct, which is made of constants."""

    place: str
    must_fit = True

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        del what, declared
        return self._varies(span)

    def _varies(self, span: Span, remedy: str = "") -> Diagnostic:
        what = f"'{span.one_line()}' is not"
        return diag.NumberNotConstant(
            span=span, place=self.place, what=what, remedy=remedy
        )

    def name(self, ex: Expressions, node: ast.Name) -> Expr | None:
        match ex.scope.get(node.name):
            case ValueSymbol(value=value):
                return value
            case Poison():
                pass
            case _:
                remedy = _remedy(ex.scope, node.name, self.place)
                ex.env.faults.add(self._varies(node.span, remedy))
        return None

    def member(self, ex: Expressions, node: ast.Member) -> None:
        self.refuse(ex, node.span, "a member")

    def subscript(self, ex: Expressions, node: ast.Subscript) -> None:
        self.refuse(ex, node.span, "an element")

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        if node.function.name in BUILTINS or node.function.name in CASTS:
            return super().call(ex, node, want)
        self.refuse(ex, node.span, "a function")
        return None


def _remedy(scope: Scope, name: str, place: str) -> str:
    if meant := did_you_mean(closest(name, list(scope.names()))):
        return meant
    declared = f"Declare it: 'const {name}: u32 = 16;'."
    if place != _LENGTH:
        return declared
    return f"{declared} A length that only a call knows belongs to a tensor of structs."
