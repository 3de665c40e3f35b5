"""How deep a shader's expressions nest: what is too deep for a parser gets a name.

naga gives up at 256 levels of its own, of which a call takes two and a sign in
parentheses four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, assert_never, final

from kerngen.shader import tree as t

DEEPEST: Final = 100
"""The levels that an expression may take, counted as naga does."""

_CALL, _SIGN, _TEMPLATE = 2, 4, 6


def named_where_deep(
    body: Iterable[t.Stmt], fresh: Callable[[str], str]
) -> tuple[t.Stmt, ...]:
    """
    Name the inner parts of expressions that nest too deep.

    Before:  y[i] = exp(exp(... exp(x[i]) ...));
    After:   let inner = exp(... exp(x[i]) ...);
             y[i] = exp(... inner ...);
    """
    return tuple(part for each in body for part in _statement(each, fresh))


def _statement(statement: t.Stmt, fresh: Callable[[str], str]) -> Iterator[t.Stmt]:
    names = _Names(fresh)
    match statement:
        case t.Let(_, value) | t.Assign(_, value):
            changed: t.Stmt = replace(statement, value=names.shallow(value))
        case t.Var(_, value) | t.Return(value) if value is not None:
            changed = replace(statement, value=names.shallow(value))
        case t.If(condition, then):
            inner = named_where_deep(then, fresh)
            changed = t.If(names.shallow(condition), inner)
        case t.For() | t.Block():
            changed = replace(statement, body=named_where_deep(statement.body, fresh))
        case t.Var() | t.Return() | t.Evaluate() | t.Blank():
            changed = statement
        case _:
            assert_never(statement)
    yield from names.lets
    yield changed


@final
@dataclass(frozen=True)
class _Names:
    """Takes one expression apart; `lets` are to stand before its statement."""

    fresh: Callable[[str], str]
    lets: list[t.Let] = field(default_factory=list[t.Let])

    def shallow(self, expr: t.Expr) -> t.Expr:
        """Return an expression that nests within the limit."""
        return self._visit(expr)[0]

    def _visit(self, expr: t.Expr) -> tuple[t.Expr, int]:
        """Return an expression within the limit, and the levels that it takes."""
        match expr:
            case t.Unary(_, operand):
                inner, depth = self._below(operand, _SIGN)
                return replace(expr, operand=inner), depth
            case t.Binary(_, left, right):
                # The left side of a chain takes no parentheses.
                first, one = self._below(left, 0 if _is_chain(expr) else _CALL)
                second, other = self._below(right, _CALL)
                return replace(expr, left=first, right=second), max(one, other)
            case t.Call(_, arguments):
                inside, depth = self._arguments(arguments, _CALL)
                return replace(expr, arguments=inside), depth
            case t.Template(_, arguments, _):
                inside, depth = self._arguments(arguments, _TEMPLATE)
                return replace(expr, arguments=inside), depth
            case t.Element(base, index):
                place, one = self._visit(base)
                at, other = self._below(index, _CALL)
                return t.Element(place, at), max(one, other)
            case t.Member(base, name):
                place, depth = self._visit(base)
                return t.Member(place, name), depth
            case _:
                return expr, 0

    def _arguments(
        self, arguments: tuple[t.Expr, ...], levels: int
    ) -> tuple[tuple[t.Expr, ...], int]:
        visited = [self._below(argument, levels) for argument in arguments]
        depth = max((depth for _, depth in visited), default=0)
        return tuple(argument for argument, _ in visited), depth

    def _below(self, expr: t.Expr, levels: int) -> tuple[t.Expr, int]:
        """Return an expression some levels down, or its name if that is too deep."""
        inner, depth = self._visit(expr)
        if depth + levels <= DEEPEST:
            return inner, depth + levels
        name = self.fresh("inner")
        self.lets.append(t.Let(name, inner))
        return t.Ident(name), levels


def _is_chain(expr: t.Binary) -> bool:
    return isinstance(expr.left, t.Binary) and expr.left.op == expr.op
