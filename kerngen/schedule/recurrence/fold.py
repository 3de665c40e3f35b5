"""Strategy `fold`: a recurrence whose states are reduced at once and never stored.

    let h[n, t, i, k] = ... h[n, t - 1, i, k] ...;    y[n, t, i] = sum[k] c[n, t, k] * h[n, t, i, k];

The lanes that share an element of y have a k each, and keep its state in registers.  They
take up to 16 turns, then join the terms of these through workgroup memory, a turn each:
what many turns read is on its way at the same time, where no condition is between.  So
turns beyond the last one are taken, too, with what that reads; none is written.  Where there are
more k than lanes, they go over all turns again for the next ones; what the terms before
came to waits in a private buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.analysis.reads import holds_reduce, loads
from kerngen.ir.nodes import (
    Expr,
    Extent,
    Index,
    IndexValue,
    Load,
    LocalValue,
    Reduce,
    Role,
)
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Define, Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children
from kerngen.plan.size import ALWAYS, NEVER, all_of, ceil_div, compare
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.addresses import is_contiguous, varies
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import reduction_label, value_bytes
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, across, identity
from kerngen.schedule.lowering.steps import tensors_in_runs, write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.recurrence.blocks import turns_of
from kerngen.schedule.recurrence.strategy import fits_recur
from kerngen.schedule.recurrence.turn import declare_registers, finish_turn, loop_of
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.sizes import all_divisible, domain_size, extent_size
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t

INVOCATIONS: Final = 64
SHARING_FOURS: Final = (4, 16)
FEWEST_FOURS: Final = 8
"""How many lanes share an element where each has four states, from so many states on.

A lane then reads 2.5 numbers for a state, and not 4: that, and their addresses, is most
of the work where there are many elements.
"""

_NUMBERS: Final = (Scalar.F32, Scalar.I32, Scalar.U32)

SHARING: Final = (4, 16, 64)
"""How many lanes share an element: the fewest that have a state each, if some do."""

MOST_TURNS: Final = 16
"""How many turns the lanes of an element take before they join them, if they are as many."""


@final
@dataclass(frozen=True)
class Folded:
    """A recurrence, and the stage after it that reduces its states.

    `names` has the recurrence's index for each of the second stage's, and for `own`, that
    of the reduction.  `local` is the state, as a term of the reduction reads it.
    """

    steps: Stage
    sums: Stage
    reduce: Reduce
    local: LocalValue
    names: dict[Index, Index]

    @property
    def along(self) -> Index:
        """The index of the recurrence: its turns."""
        return self.steps.domain[loop_of(self.steps).axis]

    @property
    def own(self) -> Index:
        """The recurrence's index that the second stage reduces over:
        one state per lane.
        """
        return self.names[self.reduce.indices[0]]

    @property
    def elements(self) -> tuple[Index, ...]:
        """The recurrence's other indices,
        which lanes that share a result have in common.
        """
        return tuple(x for x in self.steps.others if x != self.own)


def fits_fold(task: Task) -> str:
    """Return why no such pair of stages begins here, or "" if one does."""
    found = folded(task)
    return found if isinstance(found, str) else ""


def fold_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that run together."""
    found = folded(task)
    return (task.stage,) if isinstance(found, str) else (found.steps, found.sums)


def folded(task: Task) -> Folded | str:
    """Return the recurrence and its reduction, or why there is no such pair."""
    stage = task.stage
    if refusal := fits_recur(task):
        return refusal
    number = task.staged.stages.index(stage)
    behind = task.staged.stages[number + 1 : number + 2]
    if not behind or task.end < number + 2:
        return "no stage behind it runs with it"
    return _folded(task, stage, behind[0])


def _folded(task: Task, steps: Stage, sums: Stage) -> Folded | str:
    """Compare two stages, one after the other."""
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
    read = {load for load in sums.reads if load.tensor == state}
    if len(read) != 1 or not isinstance(reduce.type, Scalar):
        return f"'{sums.name}' reads other states than one for each term"
    (load,) = read
    places = [s.index if isinstance(s, IndexValue) else None for s in load.subscripts]
    if {*places} != {*sums.domain, *reduce.indices} or len({*places}) < len(places):
        return f"'{sums.name}' reads other states than its own"
    names = {place: i for place, i in zip(places, steps.domain, strict=True) if place}
    if names[reduce.indices[0]] == steps.domain[loop.axis]:
        return f"'{sums.name}' reduces along the recurrence"
    written = {s.tensor for s in sums.steps if isinstance(s, Write)}
    if written & steps.tensors_read:
        return f"'{sums.name}' writes what it reads"
    if len((steps.tensors_read | sums.tensors_read | written) - {state}) >= MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS - 1} tensors"
    body = _with_state(reduce.body, load, writes[0].value)
    return Folded(steps, sums, replace(reduce, body=body), writes[0].value, names)


def _with_state(expr: Expr, load: Load, state: LocalValue) -> Expr:
    if expr == load:
        return state
    return map_children(expr, lambda part: _with_state(part, load, state))


def lower_fold(task: Task, options: Options) -> Iterator[Variant]:
    """Yield a shader for each number of lanes that share an element."""
    del options
    found = folded(task)
    assert isinstance(found, Folded), found
    together = _together(task, found)
    count = extent_size(found.own.extent)
    names = _read_by_fours(found)
    extents = _last_extents(found, names)
    whole = all_divisible((found.own.extent, *extents), LANES)
    for lanes in SHARING_FOURS:
        some = all_of(
            compare(">=", count, FEWEST_FOURS), compare("<=", count, lanes * LANES)
        )
        when = all_of(some, whole) if names else NEVER
        if when != NEVER:
            shader = _Fold(together, found, lanes, names, at_once=True).shader()
            yield Variant(f"fours{lanes}", when, (shader,))
        if when == ALWAYS:
            return
    for lanes in SHARING:
        when = compare("<=", count, lanes)
        if when != NEVER:
            shader = _Fold(together, found, lanes, at_once=True).shader()
            yield Variant(f"lanes{lanes}", when, (shader,))
        if when == ALWAYS:
            return
    words = value_bytes(found.reduce.type) // 4
    length = domain_size(found.sums.domain) * words
    scratch = Scratch(task.scratch_name("sums"), length)
    shader = _Fold(together, found, SHARING[-1], at_once=False).shader()
    yield Variant("many", ALWAYS, (shader,), (scratch,))


def _read_by_fours(found: Folded) -> frozenset[str]:
    """Return the tensors that a lane reads for four states at once; none if it can't."""
    states = [state.now.type for state in loop_of(found.steps).states]
    numbers = all(type_ in _NUMBERS for type_ in (*states, found.reduce.type))
    if not numbers:
        return frozenset()
    steps, body = tuple(s.value for s in turns_of(found.steps)), (found.reduce.body,)
    own, term = found.own, found.reduce.indices[0]
    names = tensors_in_runs(steps, own) | tensors_in_runs(body, term)
    odd = {x.tensor.name for e in steps for x in loads(e) if _is_odd(x, own)}
    odd |= {x.tensor.name for e in body for x in loads(e) if _is_odd(x, term)}
    return frozenset(names - odd)


def _is_odd(load: Load, index: Index) -> bool:
    return varies(load, index) and not is_contiguous(load, index)


def _last_extents(found: Folded, names: frozenset[str]) -> list[Extent]:
    read = found.steps.tensors_read | found.sums.tensors_read
    return [
        x.extents[-1] for x in sorted(read, key=lambda x: x.name) if x.name in names
    ]


def _together(task: Task, found: Folded) -> Task:
    """Return a task whose stage has what is written: the steps of the second stage."""
    stage = replace(found.sums, name=names_of((found.steps, found.sums)))
    stem = task.stem
    if len(task.staged.stages) == len((found.steps, found.sums)):
        stem = stem.removesuffix(f".{task.stage.name}")
    return replace(task, stage=stage, stem=stem)


@final
class _Fold:
    """Writes the shader; all states of an element are held `at_once`, or some."""

    def __init__(
        self,
        task: Task,
        found: Folded,
        lanes: int,
        names: frozenset[str] = frozenset(),
        *,
        at_once: bool,
    ) -> None:
        """Start a shader; with `names`, which are read by fours, a lane has four states."""
        self._each = LANES if names else 1
        self._task = task
        self._found = found
        self._lanes = lanes
        self._at_once = at_once
        self._shader = shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
        kind, type_ = found.reduce.kind, found.reduce.type
        self._turns = MOST_TURNS if names else min(lanes, MOST_TURNS)
        self._nothing = identity(shader, kind, type_, LANES)
        count = INVOCATIONS * self._turns // LANES
        array = f"array<{wgsl_type(type_, LANES)}, {count}>"
        size = count * LANES * value_bytes(type_)
        self._shared = shader.workgroup_array("terms", array, size)
        self._place = t.Ident(shader.fresh("place"))
        self._inside = t.Ident(shader.fresh("inside"))
        self._first = t.Ident(shader.fresh("first"))
        self._block = t.Ident(shader.fresh("block"))

    def shader(self) -> Shader:
        """Return the shader."""
        shader, found, lanes = self._shader, self._found, self._lanes
        number = t.Ident(shader.fresh("element"))
        each = INVOCATIONS // lanes
        body: list[t.Stmt] = [
            t.Let(number.name, linear_group(shader) * each + shader.lane // lanes),
            t.Let(self._place.name, shader.lane % lanes),
            t.Let(self._inside.name, number < shader.size(found.elements)),
        ]
        to = Lowerer(shader, {}, body, label=reduction_label(self._task))
        if found.elements:
            to.at.update(unravel(shader, body, found.elements, number))
        self._write(to)
        length = extent_size(found.along.extent)
        rounds = ceil_div(extent_size(found.own.extent), lanes)
        return shader.finish(
            body,
            groups=ceil_div(domain_size(found.elements), each),
            workgroup_size=INVOCATIONS,
            summary=f"{lanes} lanes per element, along {found.along.name}.",
            variant=self._variant,
            trips=ceil_div(length, self._turns) * (lanes + 1) * rounds,
        )

    @property
    def _variant(self) -> str:
        if self._each > 1:
            return f"fours{self._lanes}"
        return f"lanes{self._lanes}" if self._at_once else "many"

    def _write(self, to: Lowerer) -> None:
        """Write the loop over turns; around it that over the states, if they are many."""
        shader, found = self._shader, self._found
        own = t.Ident(shader.name(found.own.name))
        length = shader.extent(found.along.extent)
        if self._at_once:
            to.block.append(t.Let(own.name, self._place * self._each))
            self._along(to, own, length)
            return
        inner = to.nested({})
        inner.block.append(t.Let(own.name, self._first + self._place))
        self._along(inner, own, length)
        count = shader.extent(found.own.extent)
        loop = t.count_up(self._first.name, 0, count, self._lanes, *inner.block)
        to.block.append(loop)

    def _along(self, to: Lowerer, own: t.Ident, length: t.Expr) -> None:
        to.at[self._found.own] = own
        if self._each > 1:
            to = replace(to, vector=self._found.own)
        declare_registers(to, loop_of(self._found.steps))
        turns = to.nested({})
        self._take_turns(turns, own, length)
        loop = t.count_up(self._block.name, 0, length, self._turns, *turns.block)
        to.block.append(loop)

    def _take_turns(self, to: Lowerer, own: t.Ident, length: t.Expr) -> None:
        """Take some turns, and join their terms."""
        shader, found = self._shader, self._found
        fours = range(self._turns // LANES)
        terms = [t.Ident(shader.fresh(f"terms{four}")) for four in fours]
        to.block.extend(t.Var(each.name, self._nothing) for each in terms)
        lane = to.nested({})
        for number in range(self._turns):
            turn = self._turn(lane, number, length)
            steps = tuple(s for s in turns_of(found.steps) if isinstance(s, Define))
            write_steps(turn, replace(found.steps, steps=steps, loop=None))
            named = {i: turn.at[j] for i, j in found.names.items()}
            part = t.Member(terms[number // LANES], COMPONENTS[number % LANES])
            turn.block.append(t.Assign(part, self._term(turn, named)))
            finish_turn(turn, found.steps, turn.at[found.along])
            lane.block.append(t.Block(f"turn {number}", tuple(turn.block)))
        has_state = t.all_of(self._inside, own < shader.extent(found.own.extent))
        to.block.append(t.If(has_state, tuple(lane.block)))
        for four, each in enumerate(terms):
            at = shader.lane + four * INVOCATIONS
            to.block.append(t.Assign(self._shared[at], each))
        to.block.append(t.BARRIER)
        self._join(to, length)
        to.block.append(t.BARRIER)

    def _term(self, turn: Lowerer, named: dict[Index, t.Expr]) -> t.Expr:
        """Return the term of the lane's state; of four states, theirs joined."""
        reduce = self._found.reduce
        inner = replace(turn, at={**turn.at, **named})
        if self._each == 1:
            return inner.lower(reduce.body).expr
        inner = replace(inner, vector=reduce.indices[0])
        value = inner.widen(inner.lower(reduce.body), reduce.body.type)
        terms = t.Ident(self._shader.fresh("terms_of_four"))
        turn.block.append(t.Let(terms.name, value))
        return across(reduce.kind, terms)

    def _join(self, to: Lowerer, length: t.Expr) -> None:
        """Let lanes of an element join the terms of a turn each, and finish it."""
        shader, found = self._shader, self._found
        reduce, stage = found.reduce, self._task.stage
        total, other = (t.Ident(shader.fresh(name)) for name in ("total", "other"))
        joins = replace(to.nested({}), vector=None)
        first = t.Binary("-", shader.lane, self._place)
        number = t.Ident(shader.fresh("joined"))
        row = number // LANES * INVOCATIONS + first
        term = self._shared[row + other][number % LANES]
        turn = self._block + number
        element = t.Ident(shader.name(found.along.name))
        joins.block.append(t.Let(element.name, self._element(turn, length)))
        joins.at[found.along] = element
        joins.at.update({i: joins.at[j] for i, j in found.names.items()})
        start = identity(shader, reduce.kind, reduce.type)
        take = accumulate(reduce.kind, total, term)
        end = t.u32(self._lanes)
        finish = joins.nested({})
        original = self._task.reduction
        assert original is not None, "the stage reduces"
        finish = replace(finish, reduced={original: Value(total)}, locals={})
        write_steps(finish, stage)
        loop = t.count_up(other.name, 0, end, 1, take)
        if self._at_once:
            joins.block.extend((t.Var(total.name, start), loop, *finish.block))
        else:
            joins.block.extend(self._in_rounds(joins, total, loop, finish.block))
        write = t.If(t.all_of(self._inside, turn < length), tuple(joins.block))
        turns, lanes = t.u32(self._turns), self._lanes
        to.block.append(t.count_up(number.name, self._place, turns, lanes, write))

    def _in_rounds(
        self, to: Lowerer, total: t.Ident, loop: t.Stmt, finish: list[t.Stmt]
    ) -> list[t.Stmt]:
        """Add to what the states before came to; finish with the last ones."""
        shader, found = self._shader, self._found
        sums = shader.scratch("sums", found.reduce.type, written=True)
        address = t.Ident(shader.fresh("address"))
        at: t.Expr = t.ZERO
        for index in found.sums.domain:
            at = at * shader.extent(index.extent) + to.at[index]
        reduce = found.reduce
        count = shader.extent(found.own.extent)
        further = self._first + self._lanes
        earlier = t.Assign(total, sums.load(address))
        return [
            t.Let(address.name, at),
            t.Var(total.name, identity(shader, reduce.kind, reduce.type)),
            t.If(self._first > 0, (earlier,)),
            loop,
            t.If(t.Binary(">=", further, count), tuple(finish)),
            t.If(further < count, (sums.store(address, total),)),
        ]

    # Turns

    def _turn(self, lane: Lowerer, number: int, length: t.Expr) -> Lowerer:
        element = t.Ident(self._shader.name(self._found.along.name))
        turn = lane.nested({self._found.along: element})
        last = t.call("min", self._block + number, length - 1)
        value = self._element(last, length)
        turn.block.append(t.Let(element.name, value))
        return turn

    def _element(self, turn: t.Expr, length: t.Expr) -> t.Expr:
        """Return which element a turn computes."""
        descending = loop_of(self._found.steps).descending
        return t.Binary("-", length - 1, turn) if descending else turn
