"""Order the steps of a run of stages into passes over the elements of a row.

    top[i]   = max[j] x[i, j];                    pass 1: max;   then top
    total[i] = sum[j] exp(x[i, j] - top[i]);      pass 2: sum;   then total
    y[i, j]  = exp(x[i, j] - top[i]) / total[i];  pass 3: y

A new pass begins where a step needs the result of a reduction of the last one.  So two sums
over the same row share a pass, if neither needs the other.  The values that the run
computes become locals, of the row (`top`) or of the element (`y`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import outer_reductions
from kerngen.ir.staging.stages import Define, Stage, Step, Write, as_stored
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import map_children, replaced, subscript_value, walk
from kerngen.schedule.rows.run import RowRole, Run, own_columns


@final
@dataclass(frozen=True, slots=True)
class Fold:
    """Action: add the element's term to the reduction `value`; `local` names its result.

    The result is known after the pass.
    """

    local: ir.LocalValue
    value: ir.Reduce


@final
@dataclass(frozen=True, slots=True)
class ScaledSum:
    """Action: add exp(value - top), where `top` is only known when the pass is over.

    `largest` is the fold by which the same pass finds the largest value (`online.py`).
    """

    local: ir.LocalValue
    value: ir.Expr
    top: ir.LocalValue
    largest: ir.LocalValue


@final
@dataclass(frozen=True, slots=True)
class Compute:
    """Action: compute a value of the element, and name it: `let local = value;`."""

    local: ir.LocalValue
    value: ir.Expr


@final
@dataclass(frozen=True, slots=True)
class Store:
    """Action: store a local in a tensor.

    `places` has a subscript for each axis; without, it is stored at the element's indices.
    """

    tensor: ir.Tensor
    value: ir.LocalValue
    places: tuple[ir.Subscript, ...] = ()


Action: TypeAlias = Fold | ScaledSum | Compute | Store


@final
@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a row: actions for every element, then values of the row.

    - `each`: the actions for an element, in order
    - `after`: the values that are computed once the reductions are known, as
      `scale = 1.0 / top`
    - `reads`: the reads that are made for several elements before any action for one of them
    """

    each: tuple[Action, ...] = ()
    after: tuple[tuple[ir.LocalValue, ir.Expr], ...] = ()
    reads: tuple[Compute, ...] = ()

    @property
    def locals(self) -> Iterator[ir.LocalValue]:
        """The locals of all values that the pass computes, its reads aside."""
        for action in self.each:
            if not isinstance(action, Store):
                yield action.local
        yield from (local for local, _ in self.after)

    def known_after(self) -> set[ir.LocalValue]:
        """Return the locals with one value for the row, known only when the pass is over."""
        folds = {action.local for action in self.each if isinstance(action, Fold)}
        return folds | {local for local, _ in self.after}


@final
@dataclass(frozen=True, slots=True)
class RowPlan:
    """The passes of a run, whose stages' indices are renamed to `rows` and `columns`.

    - `row_values`: the tensors with one number for each row, with the locals stored in them
    - `row_places`: the computed positions at which some of these tensors are stored
    - `carried`: the values of elements that a later pass needs, with the tensors in which
      they are stored
    """

    rows: tuple[ir.Index, ...]
    columns: tuple[ir.Index, ...]
    passes: tuple[Pass, ...]
    row_values: dict[ir.Tensor, ir.LocalValue]
    carried: dict[ir.LocalValue, ir.Tensor]
    row_places: dict[ir.Tensor, tuple[ir.Subscript, ...]]

    @property
    def element(self) -> tuple[ir.Index, ...]:
        """The indices of an element: the rows' and the columns'."""
        return (*self.rows, *self.columns)

    def per_element(self) -> Iterator[ir.Expr]:
        """Yield the expressions computed for every element; for a reduction, its term."""
        for pass_ in self.passes:
            yield from expressions((*pass_.reads, *pass_.each))

    def read_first(self) -> Iterator[ir.LocalValue]:
        """Yield the locals that passes read from memory before their actions (`Pass.reads`)."""
        return (read.local for pass_ in self.passes for read in pass_.reads)

    def per_row(self) -> Iterator[ir.Expr]:
        """Yield the expressions computed once per row."""
        return (value for pass_ in self.passes for _, value in pass_.after)


def expressions(actions: Iterable[Action]) -> Iterator[ir.Expr]:
    """Yield the expressions that actions compute; for a reduction, its term."""
    for action in actions:
        match action:
            case Fold(value=reduce):
                yield reduce.body
            case ScaledSum(value=value) | Compute(value=value):
                yield value
            case Store(value=value, places=places):
                yield value
                yield from map(subscript_value, places)


def plan_rows(run: Run, kept: frozenset[ir.Tensor], taken: frozenset[str]) -> RowPlan:
    """Return the passes over a row that compute all stages of a run.

    `kept` are the run's tensors that are needed after it, so that they must be stored; new
    locals get none of the names in `taken`.
    """
    planner = _Planner(run, kept, taken)
    for stage in run.stages:
        planner.add(stage)
    return RowPlan(
        run.rows,
        run.columns,
        tuple(planner.passes),
        planner.row_values,
        _carried(planner.passes),
        planner.row_places,
    )


def _carried(passes: list[Pass]) -> dict[ir.LocalValue, ir.Tensor]:
    """Return the values of elements that are used in a later pass than their own."""
    computed: dict[ir.LocalValue, ir.Tensor] = {}
    carried: dict[ir.LocalValue, ir.Tensor] = {}
    for pass_ in passes:
        used = {x for value in expressions(pass_.each) for x in walk(value)}
        carried |= {x: tensor for x, tensor in computed.items() if x in used}
        own = {a.local: a.value for a in pass_.each if isinstance(a, Compute)}
        # A value can be read back if the pass that computes it stores it at its own
        # element, and the tensor's type does not round it, as f16 does.
        for action in pass_.each:
            if not isinstance(action, Store) or action.value not in own:
                continue
            if action.places:
                continue
            if as_stored(value := own[action.value], action.tensor) is value:
                computed[action.value] = action.tensor
    return carried


@final
class _Planner:
    """Builds the passes of a run: stages are added one by one, in order.

    `_current` has the local with the newest value of each tensor that the run has written.
    """

    def __init__(
        self, run: Run, kept: frozenset[ir.Tensor], taken: frozenset[str]
    ) -> None:
        """Begin with an empty pass; `kept` and `taken` are those of `plan_rows`."""
        self.run = run
        self.passes = [Pass()]
        self.row_values: dict[ir.Tensor, ir.LocalValue] = {}
        self.row_places: dict[ir.Tensor, tuple[ir.Subscript, ...]] = {}
        self._kept = kept
        self._current: dict[ir.Tensor, ir.LocalValue] = {}
        self._names = set(taken)

    def add(self, stage: Stage) -> None:
        """Add the steps of a stage: as actions for each element, or as values of the row."""
        part = self.run.part(stage)
        locals_: dict[ir.LocalValue, ir.LocalValue] = {}
        actions: list[Action] = []
        for step in stage.steps:
            value = self._renamed(stage, step.value, locals_)
            places: tuple[ir.Subscript, ...] = ()
            if isinstance(value, StoreAt):
                places, value = value.places, value.value
            # Later reads become this value, so it is rounded as the tensor would round it.
            if isinstance(step, Write) and self._reads(step.tensor):
                value = as_stored(value, step.tensor)
            if part is RowRole.EACH:
                self._compute(step, value, places, locals_, actions)
            else:
                self._after(step, value, places, locals_)
        self._add_actions(actions)

    def _reads(self, tensor: ir.Tensor) -> bool:
        return any(tensor in stage.tensors_read for stage in self.run.stages)

    def _compute(
        self,
        step: Step,
        value: ir.Expr,
        places: tuple[ir.Subscript, ...],
        locals_: dict[ir.LocalValue, ir.LocalValue],
        actions: list[Action],
    ) -> None:
        """Add the actions of a step for each element: a computation, and maybe a store."""
        if isinstance(value, ir.LocalValue) and isinstance(step, Write):
            local = value
        else:
            local = self._local(step)
            actions.append(Compute(local, value))
        match step:
            case Define(local=own):
                locals_[own] = local
            case Write(tensor=tensor):
                actions.append(Store(tensor, local, places))
                if not places:
                    self._current[tensor] = local

    def _after(
        self,
        step: Step,
        value: ir.Expr,
        places: tuple[ir.Subscript, ...],
        locals_: dict[ir.LocalValue, ir.LocalValue],
    ) -> None:
        """Add a step that is done once per row, and the reduction in it.

        `mean[i] = (sum[j] x[i, j]) / f32(n)` becomes the fold of `mean_sum` in the pass,
        and `mean = mean_sum / f32(n)` after it.
        """
        reduce = next(outer_reductions(value), None)
        local = value if isinstance(value, ir.LocalValue) else self._local(step)
        if reduce is not None:
            # The reduction's result is the local itself, if the step computes nothing else.
            result = local
            if value != reduce:
                result = self._name(f"{local.name}_{reduce.kind}", reduce)
            fold = Fold(result, reduce)
            self._add_actions([fold])
            value = replaced(value, reduce, result)
        if value != local:
            last = self.passes[-1]
            self.passes[-1] = replace(last, after=(*last.after, (local, value)))
        match step:
            case Define(local=own):
                locals_[own] = local
            case Write(tensor=tensor):
                self.row_values[tensor] = local
                if places:
                    self.row_places[tensor] = places
                else:
                    self._current[tensor] = local

    def _add_actions(self, actions: Sequence[Action]) -> None:
        """Add actions to the last pass, or to a new one if they need its results."""
        used = {x for value in expressions(actions) for x in walk(value)}
        if used & self.passes[-1].known_after():
            self.passes.append(Pass())
        last = self.passes[-1]
        self.passes[-1] = replace(last, each=(*last.each, *actions))

    # Names

    def _local(self, step: Step) -> ir.LocalValue:
        match step:
            case Define(local=local, value=value):
                return self._name(local.name, value)
            case Write(tensor=tensor, value=value):
                # A tensor that is not bound leaves its name to the local.
                apart = tensor in self._kept or len(tensor.extents) > len(self.run.rows)
                if not apart:
                    return ir.LocalValue(tensor.name, value.type)
                return self._name(f"{tensor.name}_new", value)

    def _name(self, wanted: str, value: ir.Expr) -> ir.LocalValue:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return ir.LocalValue(name, value.type)

    def _renamed(
        self, stage: Stage, value: ir.Expr, locals_: dict[ir.LocalValue, ir.LocalValue]
    ) -> ir.Expr:
        """Return a stage's value with the run's indices, and locals for what the run wrote."""
        # The stage's rows and columns are the run's, in order, by other names.
        theirs = (*stage.domain[: len(self.run.rows)], *own_columns(self.run, stage))
        ours = (*self.run.rows, *self.run.columns)
        renamed = dict(zip(theirs, ours, strict=False))
        own = stage.reduction
        taken = {index.name for index in ours}

        def visit(expr: ir.Expr) -> ir.Expr:
            match expr:
                case ir.IndexValue(index):
                    return ir.IndexValue(renamed.get(index, index))
                case ir.LocalValue():
                    return locals_.get(expr, expr)
                case ir.Load(tensor=tensor) if tensor in self._current:
                    return self._current[tensor]
                case ir.Reduce(indices=indices, body=body, condition=condition):
                    # Reductions inside of others have indices of their own.
                    if expr != own:
                        for index in indices:
                            name = _free(index.name, taken)
                            renamed[index] = ir.Index(name, index.extent)
                    named = tuple(renamed[index] for index in indices)
                    condition = condition and visit(condition)
                    body = visit(body)
                    return replace(expr, indices=named, body=body, condition=condition)
                case _:
                    return map_children(expr, visit)

        return visit(value)


def _free(name: str, taken: set[str]) -> str:
    """Return a name for an inner reduction's index that is none of the run's."""
    while name in taken:
        name += "_inner"
    return name
