"""Reductions by the lanes of a workgroup: join their partial results, then finish.

A lane reduces its own terms to a total, then the lanes join their totals in a tree, and one
lane does the stage's steps with the result.  The order of every sum is fixed, so the same
input gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kerngen.ir.analysis.reads import outer_reductions
from kerngen.ir.memory import Leaf
from kerngen.ir.nodes import Reduce
from kerngen.ir.staging.stages import Define
from kerngen.ir.types import ValueType
from kerngen.layout.rules import Space, round_up
from kerngen.layout.types import lay_out
from kerngen.plan.size import ZERO, Size
from kerngen.schedule.lowering.argmax import partial_type, whole_of
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import across
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

BYTES: Final = 4
"""The size of an f32, i32 or u32 in workgroup memory."""


def reduction_of(task: Task) -> Reduce:
    """Return the only reduction of the task's stage, which must have one."""
    reduce = task.reduction
    if reduce is None:
        message = f"stage '{task.stage.name}' holds no reduction"
        raise AssertionError(message)
    return reduce


def reduction_label(task: Task) -> str:
    """Return the name of the local or tensor whose value contains the stage's reduction."""
    for step in task.stage.steps:
        if any(outer_reductions(step.value)):
            return step.local.name if isinstance(step, Define) else step.tensor.name
    return task.stage.name


def shared_array(
    shader: ShaderBuilder, reduce: Reduce, lanes: int, width: int = 1
) -> t.Expr:
    """Declare an array in workgroup memory, with `width` partial results for each lane."""
    type_ = f"array<{wgsl_type(partial_type(reduce), width)}, {lanes}>"
    size = lanes * width * value_bytes(partial_type(reduce))
    return shader.workgroup_array("partial", type_, size)


def value_bytes(type_: ValueType) -> int:
    """Return the bytes that an element of type `type_` takes in an array, with padding."""
    laid = lay_out(Leaf(type_), Space.STORAGE)
    return round_up(laid.align, laid.size)


def counted_terms(reduce: Reduce) -> Size:
    """Return the number of terms if the reduction has several indices, else `ZERO`.

    A 32-bit counter of all terms may overflow only then: a single index is no longer than an
    axis.
    """
    return domain_size(reduce.indices) if len(reduce.indices) > 1 else ZERO


def own_total(reduce: Reduce, total: t.Ident, width: int) -> t.Expr:
    """Return a lane's `total` as one partial result: the components of a vector are joined."""
    joins = width == LANES and not reduce.finds_place
    return across(reduce.kind, total) if joins else total


def finish_steps(
    lowerer: Lowerer,
    task: Task,
    reduce: Reduce,
    value: Value,
    only: t.Expr | None,
    known: Callable[[Lowerer], dict[str, Value]] | None = None,
) -> None:
    """Emit the stage's steps; `value` is the final partial result of its reduction, `reduce`.

    Only lanes for which the condition `only` holds run them; None: all lanes.  `known` writes
    and returns the local values that the steps read, if they read any.
    """
    # Locals of the loop over the terms do not exist behind it.
    inner = replace(lowerer.nested({}), locals={})
    locals_ = {} if known is None else known(inner)
    inner = replace(inner, reduced={reduce: whole_of(reduce, value)}, locals=locals_)
    write_steps(inner, task.stage)
    done = inner.block if only is None else [t.If(only, tuple(inner.block))]
    lowerer.block.extend(done)
