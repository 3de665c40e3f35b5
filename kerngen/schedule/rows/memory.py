"""Three rewritings of a row plan: where passes get the values of elements from.

For the maximum of `x[i, j]` in pass 1, and the sum of `exp(x[i, j] - top)` in pass 2:

    hold         x0 = x[i, j];   max of x0;   sum of exp(x0 - top)      x0 in a register
    reread       max of x[i, j];   sum of exp(x[i, j] - top)            read in each pass
    read_ahead   x0 = x[i, j]; max of x0;   x0 = x[i, j]; sum of ...    several x0 at once

With `reread`, a value that an earlier pass computed is stored there, and read back.  Behind it,
`online.py` merges two such passes as these into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, assert_never

from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Expr, IndexValue, Load, LocalValue, Reduce, Select
from kerngen.ir.walk import (
    children,
    map_children,
    subscript_value,
    walk,
    with_value,
)
from kerngen.schedule.rows.plan import (
    Action,
    Compute,
    Fold,
    Pass,
    RowPlan,
    ScaledSum,
    Store,
    expressions,
)

MOST_HELD: Final = 4
"""How many reads of an element are named at most; others go to memory at each use."""


def hold(plan: RowPlan, room: int = 0) -> RowPlan:
    """Return a plan whose first pass reads each value that is used repeatedly into registers.

    Reads that occur once are moved there as well, if they all fit: a lane has registers for
    `room` values of each element.  Then the lane waits for memory once.
    """
    values = [*plan.per_element()]
    counts = Counter(load for value in values for load in _reads(plan, value))
    found = [load for load, count in counts.items() if count > 1]
    # A read that a condition guards is not moved: it might be for nothing.
    always = {x for value in values for x in _reads(plan, value, always=True)}
    once = [load for load, count in counts.items() if count == 1 and load in always]
    if found and len(found) + len(once) + len(plan.carried) <= room:
        found += once
    locals_ = _named(plan, found)
    passes = (
        Pass(tuple(Compute(local, load) for load, local in locals_.items())),
        *(_with_locals(pass_, locals_) for pass_ in plan.passes),
    )
    carried = plan.carried | {local: load.tensor for load, local in locals_.items()}
    return replace(plan, passes=passes, carried=carried)


def reread(plan: RowPlan) -> RowPlan:
    """Return a plan whose passes hold nothing: each reads its values from memory.

    A value that an earlier pass computed is read from the tensor in which that stored it.
    """
    passes = tuple(_rereading(plan, pass_) for pass_ in plan.passes)
    return replace(plan, passes=passes, carried={})


def read_ahead(plan: RowPlan) -> RowPlan:
    """Return a plan whose passes begin with their reads, except those under a condition.

    A lane makes these reads for several elements before it works on any of them.
    """
    passes = tuple(_reading_ahead(plan, pass_) for pass_ in plan.passes)
    return replace(plan, passes=passes)


def _reading_ahead(plan: RowPlan, pass_: Pass) -> Pass:
    values = expressions(pass_.each)
    found = dict.fromkeys(x for v in values for x in _reads(plan, v, always=True))
    locals_ = _named(plan, list(found))
    reads = tuple(Compute(local, load) for load, local in locals_.items())
    return replace(_with_locals(pass_, locals_), reads=reads)


def _named(plan: RowPlan, found: list[Load]) -> dict[Load, LocalValue]:
    """Return the first few of some reads, each with the local that names its value."""
    used = {local.name for pass_ in plan.passes for local in pass_.locals}
    return {load: _held_local(load, used) for load in found[:MOST_HELD]}


def _with_locals(pass_: Pass, locals_: dict[Load, LocalValue]) -> Pass:
    """Return a pass in which locals replace reads."""

    def held(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr in locals_:
            return locals_[expr]
        return map_children(expr, held)

    return _mapped(pass_, held)


def _rereading(plan: RowPlan, pass_: Pass) -> Pass:
    """Return a pass that reads values of earlier passes back from their tensors."""
    own = {action.local for action in pass_.each if isinstance(action, Compute)}
    at = tuple(map(IndexValue, plan.element))

    def reading(expr: Expr) -> Expr:
        if isinstance(expr, LocalValue) and expr in plan.carried and expr not in own:
            return Load(plan.carried[expr], at)
        return map_children(expr, reading)

    def stored(action: Action) -> Iterator[Action]:
        """Yield an action, behind the read of its value if an earlier pass computed that."""
        local = action.value if isinstance(action, Store) else None
        if local in plan.carried and local not in own:
            own.add(local)
            yield Compute(local, Load(plan.carried[local], at))
        yield action

    mapped = _mapped(pass_, reading)
    return replace(mapped, each=tuple(a for old in mapped.each for a in stored(old)))


def loaded(plan: RowPlan) -> Iterator[Load]:
    """Yield every tensor read that the plan makes for an element of a row."""
    nodes = (node for value in plan.per_element() for node in walk(value))
    return (node for node in nodes if isinstance(node, Load))


def _held_local(load: Load, used: set[str]) -> LocalValue:
    """Return a local for a read, named after its tensor: `x`, then `x_at2_`, `x_at3_`."""
    name, number = load.tensor.name, 1
    while name in used:
        number += 1
        name = f"{load.tensor.name}_at{number}_"
    used.add(name)
    return LocalValue(name, load.type)


def _reads(plan: RowPlan, expr: Expr, *, always: bool = False) -> Iterator[Load]:
    """Yield the reads that depend on the element's indices alone, but none within another.

    With `always`, the reads in branches of an `if` are left out.
    """
    if always and isinstance(expr, Select):
        yield from _reads(plan, expr.condition, always=True)
        return
    if isinstance(expr, Load):
        free = free_indices(expr)
        locals_ = any(isinstance(node, LocalValue) for node in walk(expr))
        inner = any(isinstance(node, Reduce) for node in walk(expr))
        own = free & set(plan.columns) and free <= set(plan.element)
        if own and not locals_ and not inner:
            yield expr
            return
    for child in children(expr):
        yield from _reads(plan, child, always=always)


def _mapped(pass_: Pass, f: Callable[[Expr], Expr]) -> Pass:
    return replace(pass_, each=tuple(_mapped_action(a, f) for a in pass_.each))


def _mapped_action(action: Action, f: Callable[[Expr], Expr]) -> Action:
    match action:
        case Fold(local, reduce):
            condition = reduce.condition and f(reduce.condition)
            return Fold(
                local, replace(reduce, body=f(reduce.body), condition=condition)
            )
        case ScaledSum(value=value) | Compute(value=value):
            return replace(action, value=f(value))
        case Store(places=places):
            moved = tuple(with_value(p, f(subscript_value(p))) for p in places)
            return replace(action, places=moved)
        case _:
            assert_never(action)
