"""Reductions by the lanes of a workgroup: join their partial results, then finish.

A lane reduces its own terms to a total, then the lanes join their totals in a tree, and one
lane does the stage's steps with the result.  The order of every sum is fixed, so the same
input gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from kerngen.ir.analysis.reads import outer_reductions
from kerngen.ir.memory import Leaf
from kerngen.ir.nodes import Reduce, ReduceKind
from kerngen.ir.staging.stages import Define
from kerngen.ir.types import ValueType
from kerngen.layout.rules import Space, round_up
from kerngen.layout.types import lay_out
from kerngen.plan.size import ZERO, Size
from kerngen.schedule.lowering.argmax import partial_type, term_of, whole_of
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, across, combine
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

Take: TypeAlias = Callable[[Lowerer], None]
"""A function that writes how a lane takes a term, into the body of the loop over the terms."""

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


def into(total: t.Ident, reduce: Reduce, width: int) -> Take:
    """Return a function that emits the addition of a term, of `width` elements, to `total`."""

    def take(inner: Lowerer) -> None:
        term = term_of(inner, reduce, wide=width > 1)
        inner.block.append(accumulate(reduce.kind, total, term))

    return take


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


def join(
    shader: ShaderBuilder,
    kind: ReduceKind,
    shared: t.Expr,
    *,
    count: int,
    position: t.Expr | None = None,
    stride: int = 1,
    starts: Iterable[int] = (0,),
) -> list[t.Stmt]:
    """Return statements that join `count` values of `shared`, `stride` apart, in a tree.

    `position` is the lane's place among the `count` (default: the lane itself); `count` is a
    power of two.  Each step has a barrier.  In the end, the element of the lane at position 0
    has the result.  Where `shared` has several arrays of partial results, one behind the other,
    these begin at `starts`, and are joined side by side:

        for (var half = 32u; half > 0u; half >>= 1u) {            // of 64 lanes
            if (lane < half) { partial[lane] = partial[lane] + partial[lane + half]; }
            workgroupBarrier();
        }
    """
    half = t.Ident(shader.name("half", "join"))
    place = shader.lane if position is None else position

    def merge(own: t.Expr) -> t.Stmt:
        other = shared[own + half * stride]
        return t.Assign(shared[own], combine(kind, shared[own], other))

    merged = tuple(merge(shader.lane + start) for start in starts)
    loop = t.For(
        half.name,
        t.u32(count // 2),
        t.Binary(">", half, t.ZERO),
        t.Assign(half, t.ONE, ">>="),
        (t.If(place < half, merged), t.BARRIER),
    )
    return [t.BARRIER, loop]


def finish_steps(
    lowerer: Lowerer, task: Task, reduce: Reduce, value: Value, only: t.Expr | None
) -> None:
    """Emit the stage's steps; `value` is the final partial result of its reduction, `reduce`.

    Only lanes for which the condition `only` holds run them; None: all lanes.
    """
    # Locals of the loop over the terms do not exist behind it.
    inner = lowerer.nested({})
    inner = replace(inner, reduced={reduce: whole_of(reduce, value)}, locals={})
    write_steps(inner, task.stage)
    done = inner.block if only is None else [t.If(only, tuple(inner.block))]
    lowerer.block.extend(done)
