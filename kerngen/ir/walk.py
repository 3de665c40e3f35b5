"""Walking expressions: every pass that looks below a node does it through these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Cast,
    Constant,
    ConstRef,
    DimValue,
    Expr,
    FunctionCall,
    IndexValue,
    Load,
    LocalValue,
    Reduce,
    Select,
    Unary,
    UniformValue,
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions, in the order of the source."""
    match expr:
        case Constant() | ConstRef() | IndexValue() | DimValue():
            return ()
        case UniformValue() | LocalValue():
            return ()
        case Load(subscripts=parts):
            return parts
        case BuiltinCall(arguments=parts) | FunctionCall(arguments=parts):
            return parts
        case Unary(operand=operand) | Cast(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Reduce(body=body):
            return (body,)
        case _:
            assert_never(expr)


def map_children(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Return `expr` with `f` applied to each direct subexpression.

    The node itself comes back where nothing changed.
    """
    before = children(expr)
    after = tuple(f(child) for child in before)
    if all(new is old for new, old in zip(after, before, strict=True)):
        return expr
    return with_children(expr, after)


def with_children(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """Return `expr` with other direct subexpressions, as many as it has."""
    match expr:
        case Constant() | ConstRef() | IndexValue() | DimValue():
            return expr
        case UniformValue() | LocalValue():
            return expr
        case Load():
            return replace(expr, subscripts=parts)
        case BuiltinCall():
            return replace(expr, arguments=parts)
        case FunctionCall():
            return replace(expr, arguments=parts)
        case Unary():
            return replace(expr, operand=parts[0])
        case Cast():
            return replace(expr, operand=parts[0])
        case Binary():
            return replace(expr, left=parts[0], right=parts[1])
        case Select():
            condition, then, otherwise = parts
            return replace(expr, condition=condition, then=then, otherwise=otherwise)
        case Reduce():
            return replace(expr, body=parts[0])
        case _:
            assert_never(expr)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield `expr` and every expression below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)
