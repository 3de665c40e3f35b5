"""Which stages compute with scalars alone, so that four elements fit a vector.

Vectors, matrices and structs may occur where they are the same for all elements: a
component of a parameter is a number like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerngen.ir.nodes import (
    Expr,
    Function,
    FunctionCall,
    IndexValue,
    Load,
    LocalValue,
    UniformValue,
)
from kerngen.ir.once import once
from kerngen.ir.operators import is_composite
from kerngen.ir.staging.stages import Define, Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children, walk

WITH_VECTORS = "the stage computes with vectors, matrices or structs"


@once
def is_plain(stage: Stage) -> bool:
    """Whether every element of every value is a scalar of its own, in no order."""
    if stage.loop:
        return False
    for step in stage.steps:
        if isinstance(step, Write) and not isinstance(step.tensor.element, Scalar):
            return False
        if isinstance(step, Define) and is_composite(step.local.type):
            return False
    return all(_is_plain(step.value) for step in stage.steps)


def _is_plain(expr: Expr) -> bool:
    """Whether composite values in an expression are the same for all elements."""
    if isinstance(expr, Load) and not isinstance(expr.tensor.element, Scalar):
        return False
    parts = children(expr)
    by_part = isinstance(expr, UniformValue)
    if by_part or any(is_composite(part.type) for part in (expr, *parts)):
        return not any(map(_varies, walk(expr)))
    return all(map(_is_plain, parts))


def plain_functions(functions: Iterable[Function]) -> frozenset[str]:
    """Return those that compute with scalars alone, as do all that they call.

    Callees come before callers.
    """
    plain: set[str] = set()
    for function in functions:
        own, called = _of_function(function)
        if own and called <= plain:
            plain.add(function.name)
    return frozenset(plain)


@once
def _of_function(function: Function) -> tuple[bool, frozenset[str]]:
    """Return whether a function itself has scalars alone, and what it calls."""
    values = [*(value for _, value in function.lets), function.body]
    nodes = [node for value in values for node in walk(value)]
    called = (node.function for node in nodes if isinstance(node, FunctionCall))
    return not any(is_composite(node.type) for node in nodes), frozenset(called)


def _varies(expr: Expr) -> bool:
    return isinstance(expr, IndexValue | Load | LocalValue)
