"""Trip counts of an invocation's loops: some adapters stop loops after a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kerngen.ir.nodes import Expr, Index, Reduce
from kerngen.ir.walk import children
from kerngen.plan.size import ZERO, Size, add
from kerngen.schedule.sizes import extent_size
from kerngen.schedule.task import Task


def loop_trips(task: Task, shared: Mapping[Reduce, Size]) -> Size:
    """Return how many loop trips an invocation takes in a stage.

    `shared` has the trips of reductions that several invocations share; all others are
    serial.
    """
    return add(*(_trips(value, shared) for value in task.values))


def serial_trips(exprs: Iterable[Expr]) -> Size:
    """Return how many trips the serial loops in some expressions take."""
    return add(*(_trips(expr, {}) for expr in exprs))


def nested_trips(outermost: Size, inner: tuple[Index, ...]) -> Size:
    """Return the trips of a loop and of the serial loops over `inner` inside it."""
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
