"""Warnings about `/` and `%` in subscripts whose dividend may be negative.

`x[(i - 1) % n]` reads element 0 where `i` is 0, and an author used to Python means the last
one.  In a branch of an `if`, a warning is given only if the condition reads nothing but
indices and dims that are not in the dividend: `if j < 3 { x[(i - 1) % n] }`.  Any other
condition may be there to prevent a negative dividend.  Functions that a subscript calls, and
`let`s that it reads, are examined, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeGuard

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.scope import IndexSymbol, is_dim
from kerngen.check.traverse import names_in, subexpressions
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.signs import may_be_negative
from kerngen.ir.types import Scalar
from kerngen.ir.walk import called, map_children, subscript_value, walk
from kerngen.source.text import Span
from kerngen.syntax import ast

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
"""A function of more lets, its body counted as one, is not examined: inlined, lets that read
each other twice double in length."""

_Branching: TypeAlias = ir.Select | ir.FunctionCall

_MOST_PARTS: Final = 100
"""A let of more nodes is not recorded, and a function of more is not examined, for the same
reason."""


def warn_of_negatives(ex: Expressions, node: ast.Expr) -> None:
    """Warn of each quotient in a subscript whose dividend may be negative."""
    for part in _of_this_subscript(node):
        match part:
            case ast.Binary(op="/" | "%" as op, left=left, right=right):
                if _divides_negatives(ex, part) and not _is_guarded(ex, left):
                    texts = (side.span.one_line(limit=60) for side in (left, right))
                    _warn(ex, part.span, op, *texts)
            case ast.Call(function=function, arguments=arguments):
                operator = _divides_within(ex, part)
                if operator is not None and not _is_guarded(ex, *arguments):
                    _warn(ex, part.span, operator, "a", "b", function.name)
            case ast.Subscript(base=ast.Name(name=let), subscripts=places):
                operator = _divides_in_let(ex, part)
                if operator is not None and not _is_guarded(ex, *places):
                    _warn(ex, part.span, operator, "a", "b", let)
            case _:
                pass


def _of_this_subscript(node: ast.Expr) -> Iterator[ast.Expr]:
    """Yield an expression and those below it, but not the subscripts in it.

    These are checked as subscripts themselves.  If they were walked here, too, 100 levels of
    subscripts in subscripts would take 10 s.
    """
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        below = subexpressions(node)
        waiting.extend(below[:1] if isinstance(node, ast.Subscript) else below)


def _divides_negatives(ex: Expressions, node: ast.Binary) -> bool:
    """Whether a quotient is of an integer that may be negative."""
    match ex.env.model.value(node):
        case ir.Binary(op="/" | "%", left=dividend, type=Scalar.I32):
            return may_be_negative(_inlined(ex.env, dividend))
        case _:  # computed, or faulty
            return False


def _divides_within(ex: Expressions, node: ast.Call) -> Literal["/", "%"] | None:
    """Return the operator by which a called function divides what may be negative, or None."""
    match ex.env.model.value(node):
        case ir.FunctionCall(function=name, arguments=given) if name in ex.env.bodies:
            arguments = tuple(_inlined(ex.env, each) for each in given)
            return _truncating_division(ex.env.bodies[name], arguments)
        case _:
            return None


def _divides_in_let(ex: Expressions, node: ast.Subscript) -> Literal["/", "%"] | None:
    """Return the operator by which a read let divides what may be negative, or None."""
    match ex.env.model.value(node):
        case ir.Load(tensor=tensor) as load if tensor.name in ex.env.lets:
            return _division_in((_inlined(ex.env, load),), lambda dividend: dividend)
        case _:
            return None


def _warn(
    ex: Expressions,
    span: Span,
    operator: Literal["/", "%"],
    left: str,
    right: str,
    within: str = "",
) -> None:
    warning = diag.NegativeDividend(
        span=span, operator=operator, left=left, right=right, within=within
    )
    ex.env.warnings.add(warning)


def _truncating_division(
    function: ir.Function, arguments: tuple[ir.Expr, ...]
) -> Literal["/", "%"] | None:
    """Return the operator by which a function divides an integer that may be negative, or None.

    None, too, for a function with an `if` or a call, which may prevent it, and for one that
    corrects the result by adding the divisor: `(i % n + n) % n`.
    """
    values = (*(value for _, value in function.lets), function.body)

    def given(dividend: ir.Expr) -> ir.Expr:
        return called(replace(function, body=dividend), arguments)

    return _division_in(values, given)


def _division_in(
    values: Sequence[ir.Expr], given: Callable[[ir.Expr], ir.Expr]
) -> Literal["/", "%"] | None:
    """Return the operator by which some values divide an integer that may be negative, or None.

    `given` returns a dividend with the arguments of a call.
    """
    parts = [part for value in values for part in walk(value)]
    many = len(values) > _MOST_VALUES or len(parts) > _MOST_PARTS
    if many or any(isinstance(part, _Branching) for part in parts):
        return None
    corrected = {part.left for part in parts if _adds_divisor(part)}
    for part in parts:
        match part:
            case ir.Binary(op="/" | "%" as op, left=left, type=Scalar.I32):
                if not corrected & {part, *walk(left)} and may_be_negative(given(left)):
                    return op
            case _:
                pass
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
    """Return an expression with reads of recorded lets replaced by their values."""
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
    """Whether a condition around a quotient may leave out negative dividends."""
    if not ex.in_branch:
        return False
    divided = {name.name for name in names_in(*divided_in)}
    guards = {name.name for name in names_in(*ex.guards)}
    symbols = {name: ex.scope.get(name) for name in guards}
    return not guards or any(
        name in divided or not (isinstance(symbol, IndexSymbol) or is_dim(symbol))
        for name, symbol in symbols.items()
    )
