"""Warnings about `/` and `%` in subscripts whose dividend may be negative.

`x[(i - 1) % n]` reads element 0 where `i` is 0, and who thinks in Python means the last
one.  In a branch of an `if` this is reported only where the condition is of indices and
dims that the dividend has not: `if j < 3 { x[(i - 1) % n] }`.  Any other condition may be
there to prevent it.  The functions of the file that a subscript calls are looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeGuard, TypeVar

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.scope import IndexSymbol, is_dim
from kerngen.check.traverse import names_in, subexpressions
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.signs import may_be_negative
from kerngen.ir.types import Scalar
from kerngen.ir.walk import called, children, map_children, subscript_value, walk
from kerngen.syntax import ast

_Expr = TypeVar("_Expr", ir.Expr, ast.Expr)

_Arithmetic: TypeAlias = (
    ir.Binary
    | ir.Unary
    | ir.Constant
    | ir.ConstRef
    | ir.DimValue
    | ir.IndexValue
    | ir.UniformValue
)

_MOST_VALUES: Final = 3
"""Lets of functions double, too."""

_Branching: TypeAlias = ir.Select | ir.FunctionCall

_MOST_PARTS: Final = 100
"""Of a longer let nothing is kept: lets that read each other twice would double it."""


def warn_of_negatives(ex: Expressions, node: ast.Expr, value: ir.Expr) -> None:
    """Warn of each quotient in a subscript whose dividend may be negative."""
    typed = [
        part
        for part in _of_this_subscript(value, _typed_parts)
        if isinstance(part, ir.Binary) and _divides(part.op)
    ]
    written = [
        part
        for part in _of_this_subscript(node, _written_parts)
        if isinstance(part, ast.Binary) and _divides(part.op)
    ]
    if len(typed) != len(written):  # some were computed: only the others are typed
        written = [part for part in written if any(names_in(part))]
    for quotient, place in zip(typed, written, strict=False):
        dividend = _inlined(ex.env, quotient.left)
        if (
            quotient.type is Scalar.I32
            and may_be_negative(dividend)
            and _divides(place.op)
            and not _is_guarded(ex, place.left)
        ):
            ex.env.warnings.add(
                diag.NegativeDividend(
                    span=place.span,
                    operator=place.op,
                    left=place.left.span.one_line(limit=60),
                    right=place.right.span.one_line(limit=60),
                )
            )
    _warn_of_calls(ex, node, value)


def _of_this_subscript(
    expr: _Expr, parts: Callable[[_Expr], tuple[_Expr, ...]]
) -> Iterator[_Expr]:
    """Yield an expression and those below it, but none of a subscript within it.

    Those are checked as subscripts themselves; 100 levels of them took 10 s.
    """
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(parts(node)))


def _typed_parts(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    match expr:
        case ir.Load() | ir.UniformValue():
            return ()
        case ir.Part(operand=operand):
            return (operand,)
        case _:
            return children(expr)


def _written_parts(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    match expr:
        case ast.Subscript(base=base):
            return (base,)
        case _:
            return subexpressions(expr)


def _warn_of_calls(ex: Expressions, node: ast.Expr, value: ir.Expr) -> None:
    """Record a warning for each call of a function that divides what it is given so."""
    typed = [
        part
        for part in _of_this_subscript(value, _typed_parts)
        if isinstance(part, ir.FunctionCall)
    ]
    written = [
        part
        for part in _of_this_subscript(node, _written_parts)
        if isinstance(part, ast.Call) and part.function.name in ex.env.functions
    ]
    for call, place in zip(typed, written, strict=False):
        function = ex.env.bodies.get(call.function)
        if function is None or _is_guarded(ex, *place.arguments):
            continue
        arguments = tuple(_inlined(ex.env, each) for each in call.arguments)
        operator = _truncating_division(function, arguments)
        if operator is not None:
            ex.env.warnings.add(
                diag.NegativeDividend(
                    span=place.span,
                    operator=operator,
                    left="a",
                    right="b",
                    within=call.function,
                )
            )


def _truncating_division(
    function: ir.Function, arguments: tuple[ir.Expr, ...]
) -> Literal["/", "%"] | None:
    """Return the operator by which a function divides what can be negative, if it does.

    A function with an `if`, or one that calls others, may know what it does; so does one
    that adds the divisor again: `(i % n + n) % n`.
    """
    values = (*(value for _, value in function.lets), function.body)
    parts = [part for value in values for part in walk(value)]
    many = len(values) > _MOST_VALUES or len(parts) > _MOST_PARTS
    if many or any(isinstance(part, _Branching) for part in parts):
        return None
    corrected = {part.left for part in parts if _adds_divisor(part)}
    for part in parts:
        if not isinstance(part, ir.Binary) or not _divides(part.op):
            continue
        if part.type is not Scalar.I32 or corrected & {part, *walk(part.left)}:
            continue
        if may_be_negative(called(replace(function, body=part.left), arguments)):
            return part.op
    return None


def _adds_divisor(part: ir.Expr) -> TypeGuard[ir.Binary]:
    """Whether an expression is `i % n + n`."""
    match part:
        case ir.Binary(op="+", left=ir.Binary(op="%", right=divisor), right=added):
            return divisor == added
        case _:
            return False


def record_let(
    env: Environment, name: str, indices: tuple[ir.Index, ...], value: ir.Expr
) -> None:
    """Record the value of an integer let that is arithmetic on indices and scalars."""
    if value.type is not Scalar.I32:
        return
    whole = _inlined(env, value)
    parts = [*islice(walk(whole), _MOST_PARTS + 1)]
    if len(parts) <= _MOST_PARTS and all(
        isinstance(part, _Arithmetic) for part in parts
    ):
        env.lets[name] = indices, whole


def _inlined(env: Environment, expr: ir.Expr) -> ir.Expr:
    """Return an expression with the elements of such lets replaced by what they are."""
    match expr:
        case ir.Load(tensor=tensor) if (
            tensor.role is ir.Role.LET and tensor.name in env.lets
        ):
            indices, value = env.lets[tensor.name]
            places = (
                _inlined(env, subscript_value(place)) for place in expr.subscripts
            )
            return _substituted(value, dict(zip(indices, places, strict=True)))
        case ir.Load():
            return expr
        case _:
            return map_children(expr, lambda part: _inlined(env, part))


def _substituted(expr: ir.Expr, values: Mapping[ir.Index, ir.Expr]) -> ir.Expr:
    if isinstance(expr, ir.IndexValue):
        return values[expr.index]
    return map_children(expr, lambda part: _substituted(part, values))


def _is_guarded(ex: Expressions, *divided_in: ast.Expr) -> bool:
    """Whether a condition around a quotient may keep out what is negative."""
    if not ex.in_branch:
        return False
    divided = {name.name for name in names_in(*divided_in)}
    guards = {name.name for name in names_in(*ex.guards)}
    symbols = {name: ex.scope.get(name) for name in guards}
    return not guards or any(
        name in divided or not (isinstance(symbol, IndexSymbol) or is_dim(symbol))
        for name, symbol in symbols.items()
    )


def _divides(op: str) -> TypeGuard[Literal["/", "%"]]:
    return op in {"/", "%"}
