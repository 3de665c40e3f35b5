"""Stages that compute with scalars alone, so that four of their elements fit a vector.

Vectors, matrices and structs may occur where they are the same for all elements: a
component of a parameter is a number like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerngen.ir import nodes as ir
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.operators import is_composite
from kerngen.ir.staging.stages import Define, Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children, walk

WITH_VECTORS = "the stage computes with vectors, matrices or structs"
PACKED = "the stage packs its results into words"


def is_packed(stage: Stage) -> bool:
    """Whether a stage writes narrow integers, which are packed into words (`packed.py`)."""
    return any(tensor.narrow for tensor in stage.tensors_written)


def why_not_scalar_only(stage: Stage) -> str:
    """Return why a stage can't compute four elements as a vector, or "" if it can."""
    if is_packed(stage):
        return PACKED
    return "" if has_scalars_alone(stage) else WITH_VECTORS


@cached_on_instance
def is_scalar_only(stage: Stage) -> bool:
    """Whether a stage computes with scalars alone, and is neither packed nor a recurrence."""
    return not why_not_scalar_only(stage)


def has_scalars_alone(stage: Stage) -> bool:
    """Whether a stage computes with scalars alone, and is no recurrence; it may be packed."""
    if stage.loop:
        return False
    for step in stage.steps:
        if isinstance(step, Write) and not isinstance(step.tensor.element, Scalar):
            return False
        if isinstance(step, Define) and is_composite(step.local.type):
            return False
    return all(_is_scalar(step.value) for step in stage.steps)


def _is_scalar(expr: ir.Expr) -> bool:
    """Whether composite values in an expression are the same for all elements."""
    if isinstance(expr, ir.Load) and not isinstance(expr.tensor.element, Scalar):
        return False
    parts = children(expr)
    by_part = isinstance(expr, ir.UniformValue)
    if by_part or any(is_composite(part.type) for part in (expr, *parts)):
        return not any(map(_varies, walk(expr)))
    return all(map(_is_scalar, parts))


def plain_functions(functions: Iterable[ir.Function]) -> frozenset[str]:
    """Return the names of the functions that compute with scalars alone, calls included.

    `functions` have callees before callers.
    """
    plain: set[str] = set()
    for function in functions:
        own, called = _of_function(function)
        if own and called <= plain:
            plain.add(function.name)
    return frozenset(plain)


@cached_on_instance
def _of_function(function: ir.Function) -> tuple[bool, frozenset[str]]:
    """Return whether a function itself has scalars alone, and what it calls."""
    values = [*(value for _, value in function.lets), function.body]
    nodes = [node for value in values for node in walk(value)]
    called = (node.function for node in nodes if isinstance(node, ir.FunctionCall))
    return not any(is_composite(node.type) for node in nodes), frozenset(called)


def _varies(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.IndexValue | ir.Load | ir.LocalValue)
