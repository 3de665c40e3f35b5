"""Recognise a recurrence whose states the next stage reduces, for strategy `fold`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.analysis.reads import holds_reduce
from kerngen.ir.nodes import Expr, Index, IndexValue, Load, LocalValue, Reduce, Role
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, with_indices
from kerngen.schedule.recurrence.blocks import turns_of
from kerngen.schedule.recurrence.strategy import fits_recur
from kerngen.schedule.recurrence.turn import loop_of
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class Folded:
    """A recurrence, `steps`, and the stage after it that reduces its states, `sums`.

        let h[n, t, i, k] = a[i, k] * h[n, t - 1, i, k] + x[n, t, i];
        y[n, t, i] = sum[q] c[n, t, q] * h[n, t, i, q];

    - `reduce`: the reduction of `sums`
    - `term`: what it reduces, by the recurrence's indices, with the state as a local:
      `c[n, t, k] * h`
    - `names`: the recurrence's index for each index of `sums`: k for q
    """

    steps: Stage
    sums: Stage
    reduce: Reduce
    term: Expr
    names: dict[Index, Index]

    @property
    def along(self) -> Index:
        """The recurrence's own index, t: each of its values is a turn."""
        return self.steps.domain[loop_of(self.steps).axis]

    @property
    def own(self) -> Index:
        """The index of the states, k, over which the second stage reduces."""
        return self.names[self.reduce.indices[0]]

    @property
    def elements(self) -> tuple[Index, ...]:
        """The recurrence's other indices, n and i, of which an element has one value each."""
        return tuple(x for x in self.steps.others if x != self.own)

    def element(self, turn: t.Expr, length: t.Expr) -> t.Expr:
        """Return the value of t in a turn: `length - 1 - turn` if the recurrence descends."""
        descending = loop_of(self.steps).descending
        return t.Binary("-", length - 1, turn) if descending else turn

    @property
    def values(self) -> tuple[Expr, ...]:
        """The expressions that a turn computes, the reduction's term last."""
        return (*(step.value for step in turns_of(self.steps)), self.term)


def folded(task: Task) -> Folded | str:
    """Return the task's stage and the next as a recurrence and its reduction, or why not."""
    stage = task.stage
    if refusal := fits_recur(task):
        return refusal
    number = task.staged.stages.index(stage)
    behind = task.staged.stages[number + 1 : number + 2]
    if not behind or task.end < number + 2:
        return "no stage behind it runs with it"
    return _folded(task, stage, behind[0])


def _folded(task: Task, steps: Stage, sums: Stage) -> Folded | str:
    """Return a stage and the one behind it as a pair, or the reason why they are none."""
    # The recurrence writes its states, which nothing else reads.
    writes = [s for s in turns_of(steps) if isinstance(s, Write)]
    loop, reduce = loop_of(steps), sums.reduction
    if len(writes) != 1 or loop.captures or not isinstance(writes[0].value, LocalValue):
        return "it stores more than its states, or what is left of them"
    state, others = writes[0].tensor, (s for s in task.staged.stages if s is not sums)
    if any(state in s.tensors_read for s in others) or state.role is not Role.LET:
        return f"'{state.name}' is stored, as other stages read it"
    if reduce is None or sums.loop or reduce.finds_place or len(reduce.indices) != 1:
        return f"'{sums.name}' is no reduction over one index"
    if any(holds_reduce(s.value) for s in steps.steps) or holds_reduce(reduce.body):
        return "there are reductions in it"
    # The second stage reads one state for each term, at its own turn and element.
    read = {load for load in sums.reads if load.tensor == state}
    if len(read) != 1 or not isinstance(reduce.type, Scalar):
        return f"'{sums.name}' reads other states than one for each term"
    (load,) = read
    # Its subscripts are the second stage's indices, each once, in any order.
    places = [s.index if isinstance(s, IndexValue) else None for s in load.subscripts]
    if {*places} != {*sums.domain, *reduce.indices} or len({*places}) < len(places):
        return f"'{sums.name}' reads other states than its own"
    names = {place: i for place, i in zip(places, steps.domain, strict=True) if place}
    if names[reduce.indices[0]] == steps.domain[loop.axis]:
        return f"'{sums.name}' reduces along the recurrence"
    written = {s.tensor for s in sums.steps if isinstance(s, Write)}
    if written & steps.tensors_read:
        return f"'{sums.name}' writes what it reads"
    # One binding is left for the scratch buffer of many states.
    if len((steps.tensors_read | sums.tensors_read | written) - {state}) >= MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS - 1} tensors"
    # The reduced value, by the recurrence's indices, and with the state's local.
    term = _with_state(reduce.body, load, writes[0].value)
    term = with_indices(term, {i: IndexValue(j) for i, j in names.items()})
    return Folded(steps, sums, reduce, term, names)


def _with_state(expr: Expr, load: Load, state: LocalValue) -> Expr:
    if expr == load:
        return state
    return map_children(expr, lambda part: _with_state(part, load, state))
