"""Conditions of reductions: moved out of the body, or back into it.

    sum[j when j <= i] x[j]                       `conditional`
    sum[j] if j <= i { x[j] } else { 0.0 }        `unconditional`

Both are the same reduction, as the neutral value changes no sum.  Typed kernels and stages
have the first form alone.  A strategy without a case for conditions gets the second one, by
`without_conditions`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.evaluate import NotFiniteError, bounds, constant_value
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.ir.walk import map_children

_OF_FLOATS: Final[dict[ir.ReduceKind, float]] = {
    "sum": 0.0,
    "prod": 1.0,
    "max": -math.inf,
    "min": math.inf,
    "argmax": -math.inf,
    "argmin": math.inf,
}


def identity_of(kind: ir.ReduceKind, type_: ValueType) -> ir.Expr:
    """Return the neutral value of a reduction: 0 for a sum, -inf for a maximum of floats."""
    match type_:
        case Scalar.F32:
            return ir.Constant(_OF_FLOATS[kind], type_)
        case Scalar():
            lowest, highest = bounds(type_)
            values = {"sum": 0, "prod": 1, "max": lowest, "min": highest}
            return ir.Constant(values[kind.removeprefix("arg")], type_)
        case Vector(scalar=scalar):
            return ir.Construct(type_, (identity_of(kind, scalar),))
        case Matrix(columns=columns, column=column):
            return ir.Construct(type_, (identity_of(kind, column),) * columns)
        case _:
            assert_never(type_)


def conditional(reduce: ir.Reduce) -> ir.Reduce:
    """Return a reduction with each `if` that leaves out terms as its `when`, not in its body.

    Before:  sum[j] if j <= i { x[j] } else { 0.0 }
    After:   sum[j when j <= i] x[j]
    """
    if reduce.finds_place:
        return reduce  # of no terms the place is -1, whatever the body is
    # The neutral value may be in either branch; the body may be such an `if` again.
    match reduce.body:
        case ir.Select(condition, then, otherwise) if _is_identity(
            reduce.kind, otherwise
        ):
            return conditional(_under(reduce, condition, then))
        case ir.Select(condition, then, otherwise) if _is_identity(reduce.kind, then):
            negated = ir.Unary("not", condition, Scalar.BOOL)
            return conditional(_under(reduce, negated, otherwise))
        case _:
            return reduce


def is_conditional(reduce: ir.Reduce) -> bool:
    """Whether a reduction has a `when`, or a body that is an `if`."""
    return reduce.condition is not None or isinstance(reduce.body, ir.Select)


def with_conditions(expr: ir.Expr) -> ir.Expr:
    """Return an expression with `conditional` applied to all of its reductions."""
    inner = map_children(expr, with_conditions)
    return conditional(inner) if isinstance(inner, ir.Reduce) else inner


def unconditional(reduce: ir.Reduce) -> ir.Reduce:
    """Return a reduction with its `when` as an `if` in its body.

    An `argmax` or `argmin` has the condition in both places: a term may be equal to the
    neutral value, which alone does not mean that the term is left out.
    """
    condition = reduce.condition
    if condition is None:
        return reduce
    then, otherwise = reduce.body, identity_of(reduce.kind, reduce.body.type)
    if isinstance(condition, ir.Unary):  # of bools, there is 'not' alone
        condition, then, otherwise = condition.operand, otherwise, then
    body = ir.Select(condition, then, otherwise, reduce.body.type)
    kept = reduce.condition if reduce.finds_place else None
    return replace(reduce, condition=kept, body=body)


def without_conditions(expr: ir.Expr) -> ir.Expr:
    """Return an expression with `unconditional` applied to all of its reductions."""
    inner = map_children(expr, without_conditions)
    return unconditional(inner) if isinstance(inner, ir.Reduce) else inner


def _under(reduce: ir.Reduce, condition: ir.Expr, body: ir.Expr) -> ir.Reduce:
    """Return a reduction of `body` under a condition, in addition to its own."""
    if reduce.condition is not None:
        condition = ir.Binary("and", reduce.condition, condition, Scalar.BOOL)
    return replace(reduce, condition=condition, body=body)


def _is_identity(kind: ir.ReduceKind, expr: ir.Expr) -> bool:
    """Whether an expression is the neutral value of a reduction; of sums, -0.0 is, too."""
    if isinstance(expr, ir.Construct):
        return all(_is_identity(kind, part) for part in expr.parts)
    identity = identity_of(kind, expr.type)
    try:
        value = constant_value(expr)
    except NotFiniteError:
        return False
    return isinstance(identity, ir.Constant) and value == identity.value
