"""Trip counts of the loops of one invocation: some adapters stop after a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kerngen.ir.nodes import Expr, Index, Reduce
from kerngen.ir.walk import children
from kerngen.plan.size import ZERO, Size, add
from kerngen.schedule.sizes import extent_size
from kerngen.schedule.task import Task


def loop_trips(task: Task, shared: Mapping[Reduce, Size]) -> Size:
    """Return the trips of all loops of a stage.

    `shared` has the trips of reductions that invocations share; others are serial.
    """
    return add(*(_trips(value, shared) for value in task.values))


def serial_trips(exprs: Iterable[Expr]) -> Size:
    """Return the trips of the serial loops in expressions."""
    return add(*(_trips(expr, {}) for expr in exprs))


def nested_trips(outermost: Size, inner: tuple[Index, ...]) -> Size:
    """Return the trips of a loop and of serial loops over `inner` inside of it."""
    if not inner:
        return outermost
    first, *rest = inner
    return outermost * (nested_trips(extent_size(first.extent), tuple(rest)) + 1)


def _trips(expr: Expr, shared: Mapping[Reduce, Size]) -> Size:
    inner = add(*(_trips(child, shared) for child in children(expr)))
    if not isinstance(expr, Reduce):
        return inner
    own = shared.get(expr)
    if own is None:
        first, *rest = expr.indices
        own = nested_trips(extent_size(first.extent), tuple(rest))
    return own * (inner + 1) if inner != ZERO else own
