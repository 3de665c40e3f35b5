"""Checking constants, and the defaults of parameters."""

from __future__ import annotations

from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions, complete
from kerngen.check.expressions.rules import CONSTANT
from kerngen.check.faults.places import NoDefault
from kerngen.check.faults.types import NotConstant, VectorDefault
from kerngen.check.items.types import resolve_scalar
from kerngen.check.scope import Poison, Scope, ValueSymbol
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.evaluate import Value, constant_value
from kerngen.ir.memory import Leaf, MemoryType
from kerngen.ir.types import VECTORS, Scalar, Vector
from kerngen.ir.walk import walk
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
        env.faults.add(NoDefault(span=node.span, type=type_.spelling))
        return None
    arguments = _components(node, type_)
    if not arguments:
        env.faults.add(
            VectorDefault(span=node.span, type=type_.spelling, example=_example(type_))
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
            NotConstant(span=node.span, declared=declared, place=place, name=name)
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
