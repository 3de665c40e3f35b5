"""Strategy `fold`: a recurrence whose states are reduced at once and never stored.

    let h[n, t, i, k] = ... h[n, t - 1, i, k] ...;    y[n, t, i] = sum[k] c[n, t, k] * h[n, t, i, k];

The lanes that share an element of y have a k each, or four, and keep its states in
registers (`fold_shader.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.nodes import Extent, Index
from kerngen.ir.staging.stages import Stage
from kerngen.ir.types import Scalar
from kerngen.plan.size import ALWAYS, NEVER, Guard, all_of, compare, divides
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.cooperation import value_bytes
from kerngen.schedule.lowering.steps import tensors_in_runs
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import Variant
from kerngen.schedule.recurrence.fold_shader import LaneSplit, fold_shader
from kerngen.schedule.recurrence.folded import Folded, folded
from kerngen.schedule.recurrence.tiles import INVOCATIONS, TurnReads
from kerngen.schedule.recurrence.turn import loop_of
from kerngen.schedule.sizes import all_divisible, domain_size, extent_size
from kerngen.schedule.task import Options, Task

SHARING_FOURS: Final = (4, 16)
"""How many lanes share an element where each has four states: up to 16 or 64 states."""

FEWEST_FOURS: Final = 8
"""From this many states on, a lane has four: it then reads 2.5 numbers for each, not 4."""

SHARING: Final = (4, 16, 64)
"""How many lanes share an element where each has one state: the first number that is enough.

For more states, 64 lanes take them in rounds.
"""

_NUMBERS: Final = (Scalar.F32, Scalar.I32, Scalar.U32)
"""The types whose vectors of four a lane may have."""


def fits_fold(task: Task) -> str:
    """Return why `fold` does not fit the task's stage and the next one, or "" if it does."""
    found = folded(task)
    return found if isinstance(found, str) else ""


def fold_run(task: Task) -> tuple[Stage, ...]:
    """Return the recurrence and the stage that reduces its states.

    If `fold` does not fit, the task's own stage alone.
    """
    found = folded(task)
    return (task.stage,) if isinstance(found, str) else (found.steps, found.sums)


def lower_fold(task: Task, options: Options) -> Iterator[Variant]:
    """Yield a variant for each number of lanes that share an element, for few states first."""
    del options
    found = folded(task)
    assert isinstance(found, Folded), found
    for form, when in _forms(found):
        if when != NEVER:
            yield Variant(form.name, when, (fold_shader(task, found, form),))
        if when == ALWAYS:
            return
    # More states than lanes: in rounds, with the sums so far in a scratch buffer.
    words = value_bytes(found.reduce.type) // 4
    length = domain_size(found.sums.domain) * words
    scratch = Scratch(task.scratch_name("sums"), length)
    many = LaneSplit("many", SHARING[-1], at_once=False)
    yield Variant(many.name, ALWAYS, (fold_shader(task, found, many),), (scratch,))


def _forms(found: Folded) -> Iterator[tuple[LaneSplit, Guard]]:
    """Yield the forms whose lanes have all states at once, each with its condition."""
    count = extent_size(found.own.extent)
    if names := _read_by_fours(found):
        whole = all_divisible((found.own.extent, *_last_extents(found, names)), LANES)
        for lanes in SHARING_FOURS:
            enough = compare("<=", count, lanes * LANES)
            when = all_of(compare(">=", count, FEWEST_FOURS), enough, whole)
            # `aligned`: no workgroup has elements of two rows of the last index.
            if last := _shared_but_for(found):
                each = divides(INVOCATIONS // lanes, extent_size(last.extent))
                form = LaneSplit(f"fours{lanes}_aligned", lanes, names, aligned=True)
                yield form, all_of(when, each)
            yield LaneSplit(f"fours{lanes}", lanes, names), when
    for lanes in SHARING:
        yield LaneSplit(f"lanes{lanes}", lanes), compare("<=", count, lanes)


def _shared_but_for(found: Folded) -> Index | None:
    """Return the last index of elements, if those that differ in it alone share more reads.

    In the example, elements that differ in i alone share `c[n, t, k]`.
    """
    last = found.elements[-1:]
    any_differ, last_differs = (TurnReads.of(found, x) for x in (found.elements, last))
    return last[0] if any_differ != last_differs else None


def _read_by_fours(found: Folded) -> frozenset[str]:
    """Return the tensors that a lane can read for four states at once, as vectors."""
    states = [state.now.type for state in loop_of(found.steps).states]
    if not all(type_ in _NUMBERS for type_ in (*states, found.reduce.type)):
        return frozenset()
    return frozenset(tensors_in_runs(found.values, found.own))


def _last_extents(found: Folded, names: frozenset[str]) -> list[Extent]:
    read = found.steps.tensors_read | found.sums.tensors_read
    return [
        x.extents[-1] for x in sorted(read, key=lambda x: x.name) if x.name in names
    ]
