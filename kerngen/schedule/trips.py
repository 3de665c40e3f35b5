"""How often the loops of one invocation turn: some adapters give up after a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kerngen.ir.nodes import Expr, Index, Reduce
from kerngen.ir.walk import children
from kerngen.schedule.task import Task, host_extent


def loop_turns(task: Task, shared: Mapping[Reduce, str]) -> str:
    """Return the Python text of the turns of all loops of a stage; empty if none.

    `shared` says the turns of reductions that invocations share; others are serial.
    """
    return " + ".join(filter(None, (_turns(value, shared) for value in task.values)))


def serial_turns(exprs: Iterable[Expr]) -> str:
    """Return the turns of the serial loops in expressions; empty if there are none."""
    return " + ".join(filter(None, (_turns(expr, {}) for expr in exprs)))


def nested_turns(outermost: str, inner: tuple[Index, ...]) -> str:
    """Return the turns of a loop and of serial loops over `inner` inside of it."""
    if not inner:
        return outermost
    first, *rest = inner
    return f"{outermost} * (1 + {nested_turns(host_extent(first.extent), tuple(rest))})"


def _turns(expr: Expr, shared: Mapping[Reduce, str]) -> str:
    inner = " + ".join(filter(None, (_turns(c, shared) for c in children(expr))))
    if not isinstance(expr, Reduce):
        return inner
    first, *rest = expr.indices
    serial = nested_turns(host_extent(first.extent), tuple(rest))
    own = shared.get(expr) or serial
    return f"({own}) * (1 + {inner})" if inner else own
