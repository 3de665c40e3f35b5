"""Walking syntax trees of expressions, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never, final

from kerngen.syntax import ast


def subexpressions(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """Return the direct subexpressions, in the order of the text."""
    match expr:
        case ast.Number() | ast.Boolean() | ast.Name():
            return ()
        case ast.Call(arguments=arguments):
            return arguments
        case ast.Subscript(base=base, subscripts=subscripts):
            return (base, *subscripts)
        case ast.Member(base=base):
            return (base,)
        case ast.Unary(operand=operand):
            return (operand,)
        case ast.Binary(left=left, right=right):
            return (left, right)
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case ast.Reduction():
            return expr.terms
        case _:
            assert_never(expr)


def walk_syntax(*exprs: ast.Expr) -> Iterator[ast.Expr]:
    """Yield expressions and all below them, parents first."""
    # No recursion: each node would pass through one generator for each level above it.
    waiting = [*reversed(exprs)]
    while waiting:
        expr = waiting.pop()
        yield expr
        waiting.extend(reversed(subexpressions(expr)))


def names_in(*exprs: ast.Expr) -> Iterator[ast.Name]:
    """Yield each use of a bare name: no member, call or subscript."""
    return (part for part in walk_syntax(*exprs) if isinstance(part, ast.Name))


def bare_places(*exprs: ast.Expr) -> Iterator[tuple[ast.Expr, int, ast.Name]]:
    """Yield (base, axis, subscript) for each subscript that is a bare name."""
    for expr in exprs:
        if not isinstance(expr, ast.Subscript):
            yield from bare_places(*subexpressions(expr))
            continue
        yield from bare_places(expr.base)
        for axis, subscript in enumerate(expr.subscripts):
            if isinstance(subscript, ast.Name):
                yield expr.base, axis, subscript
            else:
                yield from bare_places(subscript)


def bare_subscripts(*exprs: ast.Expr) -> Iterator[tuple[str, int, ast.Name]]:
    """Yield (tensor, axis, subscript) for bare names that subscript named tensors."""
    for base, axis, subscript in bare_places(*exprs):
        if isinstance(base, ast.Name):
            yield base.name, axis, subscript


def used_in_subscripts(name: str, *exprs: ast.Expr) -> bool:
    """Whether a name occurs anywhere within a subscript."""
    return any(
        part.name == name
        for node in walk_syntax(*exprs)
        if isinstance(node, ast.Subscript)
        for part in names_in(*node.subscripts)
    )


@final
@dataclass(frozen=True, slots=True)
class Read:
    """A read `name[subscripts]` in a statement, with the reductions that it is in."""

    statement: ast.Equation
    subscripts: tuple[ast.Expr, ...]
    reductions: tuple[ast.Reduction, ...]


def reads_of(body: tuple[ast.Equation, ...]) -> dict[str, list[Read]]:
    """Return the subscripted reads of each name, in the order of the text."""
    reads: dict[str, list[Read]] = {}

    def visit(expr: ast.Expr, around: tuple[ast.Reduction, ...]) -> None:
        match expr:
            case ast.Subscript(base=ast.Name(name=name), subscripts=subscripts):
                read = Read(statement, subscripts, around)
                reads.setdefault(name, []).append(read)
            case ast.Reduction():
                around = (*around, expr)
            case _:
                pass
        for child in subexpressions(expr):
            visit(child, around)

    for statement in body:
        visit(statement.value, ())
    return reads
