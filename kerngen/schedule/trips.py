"""How often the loops of one invocation turn: some adapters give up after a number."""

from __future__ import annotations

from collections.abc import Mapping

from kerngen.ir.nodes import Expr, Index, Reduce
from kerngen.ir.walk import children
from kerngen.schedule.task import Task, host_extent


def loop_turns(task: Task, shared: Mapping[Reduce, str]) -> str:
    """Return the Python text of the turns of all loops of a stage; empty if none.

    `shared` says the turns of reductions that invocations share; others are serial.
    """
    return " + ".join(filter(None, (_turns(value, shared) for value in task.values)))


def nest(indices: tuple[Index, ...]) -> str:
    """Return the turns of serial loops over indices, one around the other."""
    first, *rest = indices
    extent = host_extent(first.extent)
    return f"{extent} * (1 + {nest(tuple(rest))})" if rest else extent


def _turns(expr: Expr, shared: Mapping[Reduce, str]) -> str:
    inner = " + ".join(filter(None, (_turns(c, shared) for c in children(expr))))
    if not isinstance(expr, Reduce):
        return inner
    own = shared.get(expr) or nest(expr.indices)
    return f"({own}) * (1 + {inner})" if inner else own
