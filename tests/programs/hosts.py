"""What the host computes: integers exactly, everything else in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kerngen.syntax import ast

from .memory import Memory, Record, parts_of
from .numbers import ULP, Real, UndecidedError, to_f32

Number: TypeAlias = float | int

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "pow": math.pow,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "abs": abs,
    "f32": float,
    "i32": math.trunc,
    "u32": math.trunc,
}
_SLACK = 1e-14
"""What two libraries' doubles may differ by, relatively."""


@dataclass
class HostScope:
    """The functions of the file, and the values that the host knows."""

    functions: Mapping[str, ast.FunctionItem]
    values: dict[str, Number] = field(default_factory=dict[str, Number])
    reads_parts: bool = False
    """Whether any host read a part of a parameter."""


def evaluate(expr: ast.Expr, scope: HostScope) -> Number:
    """Compute an expression of a host, an axis or a range."""
    match expr:
        case ast.Number(value=value) | ast.Boolean(value=value):
            return value
        case ast.Name(name=name):
            return scope.values[name]
        case ast.Member() | ast.Subscript():
            scope.reads_parts = True
            return scope.values[_trail(expr)]
        case ast.Unary(op=op, operand=operand):
            inner = evaluate(operand, scope)
            return -inner if op == "-" else not inner
        case ast.Binary(op=op, left=left, right=right):
            return _operate(op, evaluate(left, scope), evaluate(right, scope))
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            sides = evaluate(then, scope), evaluate(otherwise, scope)
            chosen = sides[0] if evaluate(condition, scope) else sides[1]
            whole = all(isinstance(side, int) for side in sides)
            return chosen if whole else float(chosen)
        case ast.Call(function=function, arguments=arguments):
            values = [evaluate(argument, scope) for argument in arguments]
            return _call(function.name, values, scope)
        case _:
            raise AssertionError(f"the host can't compute {expr}")


def _trail(expr: ast.Expr) -> str:
    """Return how a part of a parameter is called in a scope: `light.m[1].y`."""
    match expr:
        case ast.Member(base=base, member=member):
            name = member.name
            return f"{_trail(base)}.{name}"
        case ast.Subscript(base=base, subscripts=subscripts):
            places = [s.value for s in subscripts if isinstance(s, ast.Number)]
            assert len(places) == len(subscripts)
            return _trail(base) + "".join(f"[{place}]" for place in places)
        case ast.Name(name=name):
            return name
        case _:
            raise AssertionError(f"the host can't read {expr}")


def numbers_of(name: str, memory: Memory, value: Any) -> Iterator[tuple[str, Number]]:
    """Yield every number of a parameter, as hosts call it."""
    inner = parts_of(memory)
    if not inner:
        yield name, value
    for n, part in enumerate(inner):
        trails = [f"{name}[{n}]"]
        if isinstance(memory, Record):
            trails = [f"{name}.{memory.members[n][0]}"]
        elif isinstance(memory, str) and memory.startswith("vec"):
            trails.append(f"{name}.{'xyzw'[n]}")
        for trail in trails:
            yield from numbers_of(trail, part, value[n])


def _call(name: str, values: list[Number], scope: HostScope) -> Number:
    if name not in scope.functions:
        result: Number = _FUNCTIONS[name](*values)
        whole = all(isinstance(value, int) for value in values)
        return result if whole or name in {"i32", "u32"} else float(result)
    function = scope.functions[name]
    inner = HostScope(scope.functions)
    for parameter, value in zip(function.parameters, values, strict=True):
        real = parameter.type.name.name == "f32"
        inner.values[parameter.name.name] = float(value) if real else int(value)
    for let in function.lets:
        inner.values[let.name.name] = evaluate(let.value, inner)
    result = evaluate(function.body, inner)
    return float(result) if function.result.name.name == "f32" else result


def _operate(op: ast.BinaryOp, left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int) and op in {"/", "%"}:
        if right == 0:
            return left if op == "/" else 0
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return quotient if op == "/" else left - right * quotient
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            if right == 0:
                raise UndecidedError("division by zero on the host")
            return left / right
        case "<":
            return left < right
        case ">":
            return left > right
        case "==":
            return left == right
        case "and":
            return bool(left) and bool(right)
        case "or":
            return bool(left) or bool(right)
        case _:
            raise AssertionError(f"the host can't compute {op}")


def rounded(value: float) -> Real:
    """Round to f32, once; a double near the middle of two may go either way."""
    ends = {to_f32(value * (1 - _SLACK)), to_f32(value), to_f32(value * (1 + _SLACK))}
    nearest = to_f32(value)
    error = 0.0 if len(ends) == 1 else abs(nearest) * ULP
    return nearest, error, abs(nearest)
