"""Split expressions that are nested deeper than WGSL parsers allow.

naga refuses expressions of more than 256 of its levels, of which a call takes two, and a
sign with its parentheses four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, assert_never, final

from kerngen.shader import tree as t

DEEPEST: Final = 100
"""The most levels of an expression, counted as naga does."""

# The levels of an operation; a template's text may have calls of its own around arguments.
_CALL, _SIGN, _TEMPLATE = 2, 4, 6
_LEAVES: Final = (t.Ident, t.Literal)


def named_where_deep(
    body: Iterable[t.Stmt], fresh: Callable[[str], str]
) -> tuple[t.Stmt, ...]:
    """Return statements whose too deep expressions are split: a `let` names an inner part.

    `fresh` returns an unused name that resembles its argument.

    Before:  y[i] = exp(exp(... exp(x[i]) ...));
    After:   let inner = exp(... exp(x[i]) ...);
             y[i] = exp(... inner ...);
    """
    statements = tuple(body)
    # Most often there is nothing to do: to rebuild every expression took a sixth of a build.
    # Half of the expressions occur several times, as loops are unrolled.
    distinct = {id(expr): expr for expr in _expressions(statements)}
    if all(_levels(expr) <= DEEPEST for expr in distinct.values()):
        return statements
    return tuple(part for each in statements for part in _statement(each, fresh))


def _expressions(body: Iterable[t.Stmt]) -> Iterator[t.Expr]:
    """Yield the expressions that may be too deep."""
    for statement in body:
        match statement:
            case t.Let(_, value) | t.Assign(_, value):
                yield value
            case t.Var(_, value) | t.Return(value) if value is not None:
                yield value
            case t.If(condition, then):
                yield condition
                yield from _expressions(then)
            case t.Switch(_, selector, values):
                yield selector
                yield from values
            case t.For() | t.Block():
                yield from _expressions(statement.body)
            case t.Var() | t.Return() | t.Evaluate() | t.Break() | t.Blank():
                pass
            case _:
                assert_never(statement)


def _levels(expr: t.Expr) -> int:
    """Return the levels that an expression takes."""
    # Half of all expressions are leaves, and a third operators: these are tested first, and
    # not by `match`, which takes 0.2 us for each case.
    if isinstance(expr, _LEAVES):
        return 0
    if isinstance(expr, t.Binary):
        # The left side of a chain takes no parentheses.
        left, right = expr.left, expr.right
        first = 0 if isinstance(left, _LEAVES) else _levels(left)
        second = _CALL if isinstance(right, _LEAVES) else _levels(right) + _CALL
        if not _is_chain(expr):
            first += _CALL
        return max(second, first)
    if isinstance(expr, t.Element):
        return max(_levels(expr.base), _levels(expr.index) + _CALL)
    if isinstance(expr, t.Member):
        return _levels(expr.base)
    if isinstance(expr, t.Call):
        return max(map(_levels, expr.arguments), default=-_CALL) + _CALL
    if isinstance(expr, t.Template):
        return max(map(_levels, expr.arguments), default=-_TEMPLATE) + _TEMPLATE
    if isinstance(expr, t.Unary):
        return _levels(expr.operand) + _SIGN
    return 0


def _statement(statement: t.Stmt, fresh: Callable[[str], str]) -> Iterator[t.Stmt]:
    """Yield a statement behind the lets that its expressions need."""
    names = _Names(fresh)
    match statement:
        case t.Let(_, value) | t.Assign(_, value):
            changed: t.Stmt = replace(statement, value=names.shallow(value))
        case t.Var(_, value) | t.Return(value) if value is not None:
            changed = replace(statement, value=names.shallow(value))
        case t.If(condition, then):
            inner = named_where_deep(then, fresh)
            changed = t.If(names.shallow(condition), inner)
        case t.Switch(target, selector, values):
            shallow = tuple(map(names.shallow, values))
            changed = t.Switch(target, names.shallow(selector), shallow)
        case t.For() | t.Block():
            changed = replace(statement, body=named_where_deep(statement.body, fresh))
        case t.Var() | t.Return() | t.Evaluate() | t.Break() | t.Blank():
            changed = statement
        case _:
            assert_never(statement)
    yield from names.lets
    yield changed


@final
@dataclass(frozen=True)
class _Names:
    """Splits the expressions of one statement; `lets` must precede it."""

    fresh: Callable[[str], str]
    lets: list[t.Let] = field(default_factory=list[t.Let])

    def shallow(self, expr: t.Expr) -> t.Expr:
        """Return an expression that nests within the limit."""
        if _levels(expr) <= DEEPEST:
            return expr
        match expr:
            case t.Unary(_, operand):
                return replace(expr, operand=self._below(operand, _SIGN))
            case t.Binary(_, left, right):
                first = self._below(left, 0 if _is_chain(expr) else _CALL)
                return replace(expr, left=first, right=self._below(right, _CALL))
            case t.Call(_, arguments):
                return replace(expr, arguments=self._arguments(arguments, _CALL))
            case t.Template(_, arguments, _):
                return replace(expr, arguments=self._arguments(arguments, _TEMPLATE))
            case t.Element(base, index):
                return t.Element(self.shallow(base), self._below(index, _CALL))
            case t.Member(base, name):
                return t.Member(self.shallow(base), name)
            case _:
                return expr

    def _arguments(
        self, arguments: tuple[t.Expr, ...], levels: int
    ) -> tuple[t.Expr, ...]:
        return tuple(self._below(argument, levels) for argument in arguments)

    def _below(self, expr: t.Expr, levels: int) -> t.Expr:
        """Return an operand, or the name of its `let` if it would be too deep.

        `levels` is how much deeper the operand is than the operation.
        """
        inner = self.shallow(expr)
        if _levels(inner) + levels <= DEEPEST:
            return inner
        name = self.fresh("inner")
        self.lets.append(t.Let(name, inner))
        return t.Ident(name)


def _is_chain(expr: t.Binary) -> bool:
    """Whether the left side has the same operator, as in `a + b + c`: no parentheses."""
    return isinstance(expr.left, t.Binary) and expr.left.op == expr.op
