"""Walking expressions: every pass that looks below a node does it through these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from kerngen.ir.nodes import (
    Affine,
    Binary,
    BuiltinCall,
    Cast,
    Clamped,
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
    Subscript,
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
        case Load(subscripts=subscripts):
            return tuple(map(subscript_value, subscripts))
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
        case Load(subscripts=before):
            pairs = zip(before, parts, strict=True)
            return replace(expr, subscripts=tuple(_with_value(*pair) for pair in pairs))
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


def subscript_value(subscript: Subscript) -> Expr:
    """Return the value of a subscript, before it is clamped."""
    match subscript:
        case IndexValue():
            return subscript
        case Affine(value) | Clamped(value):
            return value
        case _:
            assert_never(subscript)


def _with_value(subscript: Subscript, value: Expr) -> Subscript:
    if isinstance(subscript, IndexValue):
        assert isinstance(value, IndexValue), "a bare index stays one"
        return value
    return replace(subscript, value=value)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield `expr` and every expression below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)
