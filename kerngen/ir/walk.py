"""Traversals of expressions: their children, and copies with other children."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.store import StoreAt


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the direct subexpressions, in the order of the source."""
    match expr:  # the most frequent first
        case ir.Load(subscripts=subscripts, path=path):
            places = (*subscripts, *places_in(path)) if path else subscripts
            return tuple(map(subscript_value, places))
        case ir.IndexValue() | ir.Constant() | ir.ConstRef() | ir.DimValue():
            return ()
        case ir.Computed():
            return expr.operands
        case ir.LocalValue():
            return ()
        case ir.UniformValue(path=path):
            return tuple(map(subscript_value, places_in(path)))
        case ir.FunctionCall(arguments=parts):
            return parts
        case ir.Swizzle(operand=operand):
            return (operand,)
        case ir.Part(operand=operand, at=at):
            return (operand, subscript_value(at.place))
        case ir.Construct(parts=parts):
            return parts
        case ir.Reduce(body=body, condition=condition):
            return (body,) if condition is None else (condition, body)
        case StoreAt(value=value, places=places):
            return (value, *map(subscript_value, places))
        case _:
            assert_never(expr)


def map_children(expr: ir.Expr, f: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """Return `expr` with `f` applied to each direct subexpression.

    The node itself is returned if nothing changed, so that unchanged parts are shared.
    """
    before = children(expr)
    after = tuple(map(f, before))
    if all(map(is_, after, before)):
        return expr
    return with_children(expr, after)


def with_children(expr: ir.Expr, parts: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return a copy of `expr` with other direct subexpressions, in the order of `children`."""
    match expr:
        case ir.Constant() | ir.ConstRef() | ir.IndexValue() | ir.DimValue():
            return expr
        case ir.LocalValue():
            return expr
        case ir.UniformValue(path=path):
            return replace(expr, path=_with_places(path, parts))
        case ir.Load(subscripts=before, path=path):
            own, inner = parts[: len(before)], parts[len(before) :]
            subscripts = tuple(map(with_value, before, own))
            path = _with_places(path, inner)
            return replace(expr, subscripts=subscripts, path=path)
        case ir.Swizzle():
            return replace(expr, operand=parts[0])
        case ir.Part(at=at):
            operand, value = parts
            place = with_value(at.place, value)
            return replace(expr, operand=operand, at=replace(at, place=place))
        case ir.Construct():
            return replace(expr, parts=parts)
        case ir.BuiltinCall():
            return replace(expr, arguments=parts)
        case ir.FunctionCall():
            return replace(expr, arguments=parts)
        case ir.Unary():
            return replace(expr, operand=parts[0])
        case ir.Cast():
            return replace(expr, operand=parts[0])
        case ir.Binary():
            return replace(expr, left=parts[0], right=parts[1])
        case ir.Select():
            condition, then, otherwise = parts
            return replace(expr, condition=condition, then=then, otherwise=otherwise)
        case ir.Reduce():
            *conditions, body = parts
            return replace(expr, condition=next(iter(conditions), None), body=body)
        case StoreAt(places=before):
            value, *values = parts
            return StoreAt(value, tuple(map(with_value, before, values)))
        case _:
            assert_never(expr)


def subscript_value(subscript: ir.Subscript) -> ir.Expr:
    """Return the value of a subscript, before it is clamped."""
    match subscript:
        case ir.IndexValue():
            return subscript
        case ir.Affine(value) | ir.Clamped(value):
            return value
        case _:
            assert_never(subscript)


def places_in(path: ir.Path) -> Iterator[ir.Subscript]:
    """Yield the subscripts of a path, in order."""
    return (step.place for step in path if isinstance(step, ir.At))


def _with_places(path: ir.Path, values: tuple[ir.Expr, ...]) -> ir.Path:
    remaining = iter(values)
    return tuple(
        (
            replace(step, place=with_value(step.place, next(remaining)))
            if isinstance(step, ir.At)
            else step
        )
        for step in path
    )


def map_path(path: ir.Path, f: Callable[[ir.Expr], ir.Expr]) -> ir.Path:
    """Return a path with `f` applied to the value of each subscript in it."""
    values = tuple(f(subscript_value(place)) for place in places_in(path))
    return _with_places(path, values)


def with_value(subscript: ir.Subscript, value: ir.Expr) -> ir.Subscript:
    """Return a subscript of the same kind with another value."""
    if isinstance(subscript, ir.IndexValue):
        assert isinstance(value, ir.IndexValue), "a bare index stays one"
        return value
    return replace(subscript, value=value)


def with_indices(expr: ir.Expr, by: Mapping[ir.Index, ir.Expr]) -> ir.Expr:
    """Return an expression in which other expressions replace indices, as `by` maps them.

    A subscript that changes becomes clamped, unless it is a bare index that another one over
    the same length replaces.

    Before:  x[i, j] * f32(j),   by {j: best[i]}
    After:   x[i, best[i]] * f32(best[i])
    """

    def place(subscript: ir.Subscript) -> ir.Subscript:
        value = subscript_value(subscript)
        moved = visit(value)
        if moved == value:
            return subscript
        # A bare index that another one of the same length replaces needs no clamp.
        match value, moved:
            case ir.IndexValue(index=old), ir.IndexValue(index=new) if (
                old.extent == new.extent
            ):
                return moved
            case _:  # an index over another length may be outside of the axis
                return ir.Clamped(moved)

    def along(path: ir.Path) -> ir.Path:
        return tuple(
            replace(step, place=place(step.place)) if isinstance(step, ir.At) else step
            for step in path
        )

    def visit(node: ir.Expr) -> ir.Expr:
        match node:
            case ir.IndexValue(index=index):
                return by.get(index, node)
            case ir.Load(subscripts=subscripts, path=path):
                return replace(
                    node, subscripts=tuple(map(place, subscripts)), path=along(path)
                )
            case ir.UniformValue(path=path):
                return replace(node, path=along(path))
            case ir.Part(operand=operand, at=at):
                own = replace(at, place=place(at.place))
                return replace(node, operand=visit(operand), at=own)
            case _:
                return map_children(node, visit)

    return visit(expr)


def replaced(expr: ir.Expr, old: ir.Expr | None, new: ir.Expr) -> ir.Expr:
    """Return `expr` with each part that equals `old` replaced by `new`."""
    if expr == old:
        return new
    return map_children(expr, lambda part: replaced(part, old, new))


def with_locals(expr: ir.Expr, values: Mapping[str, ir.Expr]) -> ir.Expr:
    """Return `expr` with the local values that `values` names replaced by what it gives."""
    if isinstance(expr, ir.LocalValue) and expr.name in values:
        return values[expr.name]
    return map_children(expr, lambda part: with_locals(part, values))


def walk(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Yield `expr` and every expression below it, parents first."""
    # A stack, not recursion: by `yield from`, each node would pass through as many
    # generators as it is deep.
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def factors_of(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the factors of a product, from left to right: `a`, `b + c` of `a * (b + c)`."""
    match expr:
        case ir.Binary("*", left, right):
            yield from (*factors_of(left), *factors_of(right))
        case _:
            yield expr


def called(function: ir.Function, arguments: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return a function's value at some arguments, inlined."""
    values = {
        local.name: value
        for local, value in zip(function.parameters, arguments, strict=True)
    }

    def visit(node: ir.Expr) -> ir.Expr:
        if isinstance(node, ir.LocalValue):
            return values[node.name]
        return map_children(node, visit)

    for local, value in function.lets:
        values[local.name] = visit(value)
    return visit(function.body)
