"""Which stages compute with scalars alone, so that four elements fit a vector.

Vectors, matrices and structs may occur where they are the same for all elements: a
component of a parameter is a number like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from kerngen.ir.stages import Define, Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children, walk

WITH_VECTORS = "the stage computes with vectors, matrices or structs"


@once
def is_plain(stage: Stage) -> bool:
    """Whether every element of every value is a scalar of its own."""
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


def is_plain_function(name: str, functions: Mapping[str, Function]) -> bool:
    """Whether a function of scalars computes with scalars alone, those it calls too."""
    called = {name}
    waiting = [name]
    while waiting:
        function = functions[waiting.pop()]
        values = [*(value for _, value in function.lets), function.body]
        for expr in (node for value in values for node in walk(value)):
            if is_composite(expr.type):
                return False
            if isinstance(expr, FunctionCall) and expr.function not in called:
                called.add(expr.function)
                waiting.append(expr.function)
    return True


def _varies(expr: Expr) -> bool:
    return isinstance(expr, IndexValue | Load | LocalValue)
