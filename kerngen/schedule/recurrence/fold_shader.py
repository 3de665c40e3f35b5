"""The shader of strategy `fold`: lanes have the states of an element, and join their terms.

    for (var block = 0u; block < m; block += 16u) {
        x_tile[...] = x_ahead; ...          // what the block's turns read: `tiles.py`
        workgroupBarrier();
        let h_new = ...;                    // 16 turns: each lane has a state, or four
        terms0.x = dot(h_new, c_tile[...]);
        ...
        terms[...] = terms0; ...            // four turns in a vector
        workgroupBarrier();
        totals += terms[...]; ...           // a lane joins four turns of all states
        y[...] = totals.x; ...
    }

The last block may have turns past the end of a row.  They are computed, but not stored.
Where there are more states than lanes, the lanes go over all turns again for the next
states; meanwhile the sums of the states before are in a scratch buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.borders import ONE, Borders, difference
from kerngen.ir.analysis.linear import Lengths, length_of
from kerngen.ir.analysis.reads import is_within, loads
from kerngen.ir.staging.stages import Define
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children
from kerngen.plan.size import ceil_div
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import (
    finish_steps,
    reduction_label,
    reduction_of,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import (
    accumulate,
    across,
    combine,
    identity,
)
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.program import EVERYWHERE, DispatchShader
from kerngen.schedule.recurrence.blocks import turns_of
from kerngen.schedule.recurrence.folded import Folded
from kerngen.schedule.recurrence.tiles import (
    INVOCATIONS,
    Lane,
    LaneGroup,
    RecurrenceTiles,
    TurnReads,
)
from kerngen.schedule.recurrence.turn import (
    declare_registers,
    finish_turn,
    loop_of,
    replacing,
)
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class LaneSplit:
    """How many lanes share an element of the result, and how they share its states.

    - `names`: the tensors that are read as vectors; then a lane has four states, else one
    - `aligned`: whether the elements of a workgroup differ in the last index alone
    - `at_once`: whether the lanes have all states; else they go over all turns several times,
      for some states at a time
    """

    name: str
    lanes: int
    names: frozenset[str] = frozenset()
    aligned: bool = False
    at_once: bool = True


def fold_shader(task: Task, found: Folded, form: LaneSplit) -> DispatchShader:
    """Return the shader of a recurrence and its reduction, whose lanes are split by `form`."""
    return _Fold(_together(task, found), found, form).shader()


def _together(task: Task, found: Folded) -> Task:
    """Return a task for both stages, whose stage has the steps of the second one."""
    stage = replace(found.sums, name=names_of((found.steps, found.sums)))
    stem = task.stem
    if len(task.staged.stages) == len((found.steps, found.sums)):
        stem = stem.removesuffix(f".{task.stage.name}")
    return replace(task, stage=stage, stem=stem)


@final
class _Fold:
    """Writes the shader.

    `_terms` is the workgroup memory for the terms of a block: of each lane, a vector for
    every four turns.
    """

    def __init__(self, task: Task, found: Folded, form: LaneSplit) -> None:
        """Start a shader, and declare the workgroup memory of the terms."""
        self._task = task
        self._found = found
        self._form = form
        self._shader = shader = ShaderBuilder(task, dict.fromkeys(form.names, LANES))
        # The fewer indices a workgroup's elements differ in, the more reads they share.
        differ = found.elements[-1:] if form.aligned else found.elements
        self._reads = TurnReads.of(found, differ)
        each = LANES if form.names else 1
        bytes_ = EVERYWHERE.workgroup_bytes
        self._group = LaneGroup.of(found, self._reads, form.lanes, each, bytes_)
        self._fours = self._group.turns // LANES
        type_, count = found.reduce.type, self._fours * INVOCATIONS
        array = f"array<{wgsl_type(type_, LANES)}, {count}>"
        size = count * LANES * value_bytes(type_)
        self._terms = shader.workgroup_array("terms", array, size)
        self._first = t.Ident(shader.fresh("first"))
        self._block = t.Ident(shader.fresh("block"))
        self._borders = Borders(Lengths.of(task.staged.kernel.derived))

    def shader(self) -> DispatchShader:
        """Return the shader; it begins with the lane's element and place.

        In WGSL, where four lanes share an element:

            let column = lane & 15u;                     // of 16 elements
            let place = lane >> 4u;                      // of 4 lanes
            let element = (workgroup.y * grid.x + workgroup.x) * 16u + column;
            let inside = element < u.b * u.d;
        """
        shader, found, group = self._shader, self._found, self._group
        names = ("element", "column", "place", "inside")
        number, column, place, inside = (t.Ident(shader.fresh(name)) for name in names)
        first = linear_group(shader) * group.elements
        body: list[t.Stmt] = [
            t.Let(column.name, shader.lane % group.elements),
            t.Let(place.name, shader.lane // group.elements),
            t.Let(number.name, first + column),
            t.Let(inside.name, number < shader.size(found.elements)),
        ]
        to = Lowerer(shader, {}, body, label=reduction_label(self._task))
        if found.elements:
            to.at.update(unravel(shader, body, found.elements, number))
        self._write(to, column, place, inside)
        blocks = ceil_div(extent_size(found.along.extent), group.turns)
        rounds = ceil_div(extent_size(found.own.extent), group.lanes)
        return shader.finish(
            body,
            groups=ceil_div(domain_size(found.elements), group.elements),
            workgroup_size=INVOCATIONS,
            summary=f"{group.lanes} lanes per element, along {found.along.name}.",
            variant=self._form.name,
            trips=blocks * rounds,
        )

    def _write(
        self, to: Lowerer, column: t.Ident, place: t.Ident, inside: t.Ident
    ) -> None:
        """Write the loop over turns, within a loop over rounds of states if they are many."""
        shader, own_index = self._shader, self._found.own
        own, count = t.Ident(shader.name(own_index.name)), shader.extent(
            own_index.extent
        )
        first = t.ZERO if self._form.at_once else self._first
        inner = to if self._form.at_once else to.nested({})
        has_state = t.all_of(inside, own < count)
        lane = Lane(column, place, first, own, inside, has_state)
        inner.block.append(t.Let(own.name, first + place * self._group.each))
        inner.at[own_index] = own
        self._along(inner, lane)
        if not self._form.at_once:
            step = self._group.lanes
            # Without any states, one round is needed to store the sums of no terms.
            rounds = t.call("max", count, 1)
            to.block.append(t.count_up(self._first.name, 0, rounds, step, *inner.block))

    def _along(self, to: Lowerer, lane: Lane) -> None:
        """Write the loop over blocks of turns: store tiles, read ahead, take turns, join."""
        found, length = self._found, self._shader.extent(self._found.along.extent)
        # With four states each, registers are vectors along the states' index.
        if self._group.each > 1:
            to = replace(to, vector=found.own)
        declare_registers(to, loop_of(found.steps))
        tiles = RecurrenceTiles(to, found, self._reads, self._group, lane)
        tiles.keep()
        to.block.extend(tiles.read(t.ZERO))
        block = to.nested({})
        # Behind the first barrier tiles are complete, behind the second one the terms are.
        # The next block's tiles are stored only when all lanes have passed the second one.
        block.block.extend((*tiles.store(), t.BARRIER))
        block.block.extend(tiles.read(self._block + self._group.turns))
        self._take_turns(block, tiles, lane)
        block.block.append(t.BARRIER)
        self._join(replace(block, vector=None), lane)
        step = self._group.turns
        to.block.append(t.count_up(self._block.name, 0, length, step, *block.block))

    def _take_turns(self, to: Lowerer, tiles: RecurrenceTiles, lane: Lane) -> None:
        """Write the turns of a block, and the stores of their terms, four in a vector.

        The turns are unrolled, with no store between them, so that what does not depend on
        the states is computed ahead: on an H200 a selective scan of 8 x 2,048 x 1,024 x 16
        takes 148 us so, and 162 in a loop of eight turns, which wgpu's checks count.  Lanes
        without a state store neutral values.
        """
        shader, reduce = self._shader, self._found.reduce
        nothing = identity(shader, reduce.kind, reduce.type, LANES)
        fours = [t.Ident(shader.fresh(f"terms{n}")) for n in range(self._fours)]
        to.block.extend(t.Var(four.name, nothing) for four in fours)
        body = to.nested({})
        for number in range(self._group.turns):
            turn = body.nested({})
            term = self._take_turn(turn, tiles, number)
            part = t.Member(fours[number // LANES], COMPONENTS[number % LANES])
            turn.block.append(t.Assign(part, term))
            finish_turn(turn, self._found.steps, turn.at[self._found.along])
            body.block.append(t.Block(f"turn {number}", tuple(turn.block)))
        to.block.append(t.If(lane.has_state, tuple(body.block)))
        for number, four in enumerate(fours):
            at = shader.lane + number * INVOCATIONS
            to.block.append(t.Assign(self._terms[at], four))

    def _take_turn(self, turn: Lowerer, tiles: RecurrenceTiles, number: int) -> t.Expr:
        """Write the lane's states in a turn of the block; return their term."""
        found, shader = self._found, self._shader
        length = shader.extent(found.along.extent)
        element = t.Ident(shader.name(found.along.name))
        # Turns past the end read at the last one, to stay inside of the axis.
        last = t.call("min", self._block + number, length - 1)
        turn.block.append(t.Let(element.name, found.element(last, length)))
        turn.at[found.along] = element
        visit = replacing(turn, tiles.values(t.u32(number)))
        for step in turns_of(found.steps):
            if isinstance(step, Define):
                value = self._behind_border(step.value, number)
                turn.define(step.local, visit(value))
        return self._joined(turn, visit(found.term))

    def _behind_border(self, expr: ir.Expr, turns: int) -> ir.Expr:
        """Return an expression without the conditions that hold from turn `turns` on.

        The second turn of a block and later ones are never the first of a row, so that
        `if t > 0 { a } else { b }` is `a`.  In turns past the end the condition may be
        false, but nothing reads their results: it is enough that `a` reads inside its axes.
        """
        found, last = self._found, self._found.along.extent
        gone: ir.Expr = ir.IndexValue(found.along)
        if loop_of(found.steps).descending:
            gone = difference(difference(length_of(last), ONE), gone)
        fact = difference(gone, ir.Constant(turns, Scalar.I32))

        def visit(part: ir.Expr) -> ir.Expr:
            if isinstance(part, ir.Select):
                is_safe = all(map(is_within, loads(part.then)))
                if is_safe and self._borders.follows(part.condition, fact):
                    return visit(part.then)
            return map_children(part, visit)

        return visit(expr)

    def _joined(self, turn: Lowerer, term: ir.Expr) -> t.Expr:
        """Return the term of the lane's state, or the joined terms of its four states.

        A sum of products of f32 is `dot(h_new, c_tile[place])`.
        """
        if self._group.each == 1:
            return turn.lower(term).expr
        match term:
            case ir.Binary("*", left, right, Scalar.F32) if (
                self._found.reduce.kind == "sum"
            ):
                return t.call("dot", *(self._wide(turn, x) for x in (left, right)))
            case _:
                terms = self._shader.let(
                    turn.block, "terms_of_four", self._wide(turn, term)
                )
                return across(self._found.reduce.kind, terms)

    @staticmethod
    def _wide(turn: Lowerer, expr: ir.Expr) -> t.Expr:
        return turn.widen(turn.lower(expr), expr.type)

    def _join(self, to: Lowerer, lane: Lane) -> None:
        """Write the joining of an element's terms: a lane joins those of four turns.

        In WGSL, with 16 turns and four lanes for each element:

            if (place < 4u) {
                totals += terms[place * 64u + column];           // of lane 0 of the element
                totals += terms[place * 64u + column + 16u];     // of lane 1
                ...
                y[...] = totals.x;                               // turn place * 4
                ...
            }
        """
        shader, found, group = self._shader, self._found, self._group
        totals, place = t.Ident(shader.fresh("totals")), lane.place
        kind, type_ = found.reduce.kind, found.reduce.type
        joins = to.nested({})
        first = place * INVOCATIONS + lane.column
        joins.block.append(t.Var(totals.name, identity(shader, kind, type_, LANES)))
        # Unrolled: wgpu's checks count the turns of a loop, which takes longer than a turn.
        for other in range(group.lanes):
            part = self._terms[first + other * group.elements]
            joins.block.append(accumulate(kind, totals, part))
        length = shader.extent(found.along.extent)
        for number, component in enumerate(COMPONENTS):
            turn = shader.let(
                joins.block, "joined", self._block + place * LANES + number
            )
            finish = joins.nested({})
            self._finish_turn(finish, turn, t.Member(totals, component))
            inside = t.all_of(lane.has_element, turn < length)
            joins.block.append(t.If(inside, tuple(finish.block)))
        to.block.append(t.If(place < self._fours, tuple(joins.block)))

    def _finish_turn(self, to: Lowerer, turn: t.Expr, total: t.Expr) -> None:
        """Write the second stage's steps for a turn, given the total of its terms."""
        shader, found = self._shader, self._found
        element = t.Ident(shader.name(found.along.name))
        length = shader.extent(found.along.extent)
        to.block.append(t.Let(element.name, found.element(turn, length)))
        to.at[found.along] = element
        to.at.update({i: to.at[j] for i, j in found.names.items()})
        only: t.Expr | None = None
        if not self._form.at_once:
            total, only = self._in_rounds(to, total)
        finish_steps(to, self._task, reduction_of(self._task), Value(total), only)

    def _in_rounds(self, to: Lowerer, total: t.Expr) -> tuple[t.Expr, t.Expr]:
        """Write the addition of the sums of earlier rounds, and keep the new sum.

        Returns the sum, and the condition that this is the last round.
        """
        shader, found = self._shader, self._found
        kind, count = found.reduce.kind, shader.extent(found.own.extent)
        sums = shader.scratch("sums", found.reduce.type, written=True)
        address, whole = (t.Ident(shader.fresh(name)) for name in ("address", "whole"))
        at: t.Expr = t.ZERO
        for index in found.sums.domain:
            at = at * shader.extent(index.extent) + to.at[index]
        further = self._first + self._group.lanes
        earlier = t.Assign(whole, combine(kind, sums.load(address), whole))
        to.block.extend(
            (
                t.Let(address.name, at),
                t.Var(whole.name, total),
                t.If(self._first > 0, (earlier,)),
                t.If(further < count, (sums.store(address, whole),)),
            )
        )
        return whole, t.Binary(">=", further, count)
