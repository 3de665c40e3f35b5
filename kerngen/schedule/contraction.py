"""Recognise contractions: sums over one index of a product of two reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Binary, Index, IndexValue, Load
from kerngen.ir.types import Scalar
from kerngen.schedule.task import Task


@final
@dataclass(frozen=True, slots=True)
class Contraction:
    """`sum[over] left * right`, both f32 and subscripted by bare indices.

    `right` is read along the last index of the domain, and `left` is not.
    """

    over: Index
    left: Load
    right: Load


def contraction_of(task: Task) -> Contraction | str:
    """Return the stage's contraction, or say why it is none."""
    reduce = task.reduction
    if reduce is None:
        return "the stage holds no reduction"
    if reduce.kind != "sum" or len(reduce.indices) != 1:
        return "its reduction is not a sum over one index"
    match reduce.body:
        case Binary("*", Load() as first, Load() as second):
            pass
        case _:
            return "its sum is not over a product of two tensor elements"
    if reduce.type is not Scalar.F32:
        return f"it sums {reduce.type.value} values, not f32"
    if not task.domain:
        return "its result is a single number"
    return _arranged(task, reduce.indices[0], first, second)


def _arranged(task: Task, over: Index, first: Load, second: Load) -> Contraction | str:
    column = task.domain[-1]
    for load in (first, second):
        if not all(isinstance(s, IndexValue) for s in load.subscripts):
            return f"'{load.tensor.name}' is read by a gather"
        if IndexValue(over) not in load.subscripts:
            return f"'{load.tensor.name}' does not depend on {over.name}"
        if len(set(load.subscripts)) != len(load.subscripts):
            return f"'{load.tensor.name}' is read along a diagonal"
    match [load for load in (first, second) if IndexValue(column) in load.subscripts]:
        case [right]:
            left = first if right is second else second
            return Contraction(over, left, right)
        case _:
            return f"not exactly one factor depends on {column.name}"
