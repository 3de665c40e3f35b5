"""Tiles of an affine recurrence: lanes join their steps, scan them, and take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Index, Load
from kerngen.ir.staging.stages import Stage
from kerngen.ir.types import Scalar, Vector
from kerngen.plan import size as host
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import value_bytes
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.joining import JOINED
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES
from kerngen.schedule.per_element import unravel
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.recurrence.blocks import (
    declare_written,
    in_blocks,
    of_component,
    store_written,
    turns_of,
    vector_read,
    write_turn,
)
from kerngen.schedule.recurrence.turn import declare_registers, finish_turn, loop_of
from kerngen.schedule.scan.affine_form import AffineStep, affine_step
from kerngen.schedule.scan.shape import MAX_PARTS, Cut
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

STEPS: Final = 8
INVOCATIONS: Final = 64
"""How many steps a lane joins by itself, and how many lanes share a row.

The scan over the lanes is most of the work: with four steps and 256 lanes an average of
4,096 rows of 4,096 took 76 us on an H200, and takes 54; 65,536 rows of 512, in which most
lanes had nothing to do, took 260 and take 87.  16 steps read too far apart: 65 and 109 us.
"""

JOINED_STEP: Final = Vector(Scalar.F32, 3)
"""A joined step: its factor, its term, and whether it forgets what was before."""

NO_STEP: Final = t.Call("vec3f", (t.Literal("1.0"), t.Literal("0.0"), t.Literal("0.0")))


MOST_GROWTH: Final = t.Literal("0x40000000u")
"""The bits of 2.0: what the joined factors of steps come to at most, or a row is done again.

A larger one may overflow, or leave of terms that cancel each other the rounding errors.
"""

LARGEST: Final = t.Literal("0x7f7fffffu")
"""The bits of the largest finite state: where a lane begins or ends a row has no larger
one, or it is done again.

A loop keeps an infinite state for ever.  A factor that has become 0 makes NaN of it, and
one that was joined to steps behind may never come to be.
"""

_SIZE: Final = t.Literal("0x7fffffffu")
"""All bits of a number but its sign."""


@final
@dataclass(frozen=True)
class AffineTiles:
    """Writes a shader that goes over tiles of a row; `names` are read by fours."""

    task: Task
    step: AffineStep
    shader: ShaderBuilder
    lanes: int
    names: set[str]
    body: list[t.Stmt]
    to: Lowerer
    shared: t.Expr
    wild: t.Ident | None = None
    """Whether factors of the lane grow, where that is noted."""

    @classmethod
    def start(
        cls, task: Task, lanes: int, names: set[str], *, redo: bool = False
    ) -> AffineTiles:
        """Start a shader."""
        step = affine_step(task.stage)
        assert isinstance(step, AffineStep), step
        shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
        type_, size = wgsl_type(JOINED_STEP), value_bytes(JOINED_STEP)
        array = f"array<{type_}, {2 * lanes}>"
        shared = shader.workgroup_array("steps", array, 2 * lanes * size)
        body = list[t.Stmt]()
        to = Lowerer(shader, {}, body)
        wild = t.Ident(shader.fresh("grows")) if redo else None
        body += [t.Var(wild.name, t.ZERO)] if wild else []
        return cls(task, step, shader, lanes, names, body, to, shared, wild)

    @property
    def stage(self) -> Stage:
        """The stage that is scanned."""
        return self.task.stage

    @property
    def index(self) -> Index:
        """The index along which steps follow each other."""
        return self.stage.domain[loop_of(self.stage).axis]

    def enter(self, row: t.Expr) -> None:
        """Name the indices of a row, and the register of the step before."""
        others = self.stage.others
        if others:
            self.to.at.update(unravel(self.shader, self.body, others, row))
        declare_registers(self.to, loop_of(self.stage))

    def then(self, first: t.Expr, second: t.Expr) -> t.Expr:
        """Return two steps as one."""
        return t.call(self.shader.helper("affine_then", 1), first, second)

    def from_(self, value: t.Expr, step: t.Expr) -> t.Expr:
        """Return the result of a joined step on a value."""
        state = t.Call("vec3f", (t.Literal("1.0"), value, t.Literal("0.0")))
        return t.Member(self.then(state, step), "y")

    def join(self, start: t.Expr, end: t.Expr) -> t.Expr:
        """Join all steps from one place to another; every lane has the result."""
        total, first = (t.Ident(self.shader.fresh(n)) for n in ("total", "first"))
        tile = list[t.Stmt]()
        own, _, _ = self._own(first, end, tile)
        _, whole = self.scan(own, tile)
        tile += (t.Assign(total, self.then(total, whole)), t.BARRIER)
        step = self.lanes * STEPS
        self.body.extend(
            (
                t.Var(total.name, NO_STEP),
                t.count_up(first.name, start, end, step, *tile),
            )
        )
        return total

    def write(self, start: t.Expr, end: t.Expr, carried: t.Expr | None) -> None:
        """Write the loop that does the steps from `start` to `end`; the state begins as `carried`."""
        state, first = (t.Ident(self.shader.fresh(n)) for n in ("state", "first"))
        tile = list[t.Stmt]()
        own, places, read = self._own(first, end, tile)
        before, all_ = self.scan(own, tile)
        (register,) = loop_of(self.stage).states[0].before
        named = self.to.locals[register.name].expr
        tile.append(t.Assign(named, self.from_(state, before)))
        tile += self._check(named, LARGEST)
        for place, whole in zip(places, read, strict=True):
            steps = self.to.nested({})
            self._take(steps, place, end, whole)
            tile.append(t.If(place < end, tuple(steps.block)))
        tile += self._check(named, LARGEST)
        tile += (t.Assign(state, self.from_(state, all_)), t.BARRIER)
        self.body.extend(
            (
                t.Var(state.name, carried or t.Literal("0.0")),
                t.count_up(first.name, start, end, self.lanes * STEPS, *tile),
            )
        )

    def note_nothing(self, row: t.Expr) -> None:
        """Write that nothing is known to grow in a row."""
        clear = self._change("atomicStore", row, t.ZERO)
        self.body.append(t.If(self.shader.lane.equals(0), (clear,)))

    def note(self, row: t.Expr) -> None:
        """Write whether factors of the lane grow, where nothing was noted before."""
        if self.wild is not None:
            self.body.append(
                t.If(self.wild > 0, (self._change("atomicOr", row, t.ONE),))
            )

    def _change(self, change: str, row: t.Expr, value: t.Expr) -> t.Stmt:
        place = t.Unary("&", self.shader.atomics("wild").expr[row])
        return t.Evaluate(t.call(change, place, value))

    def _check(self, value: t.Expr, most: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statement that notes a number of greater size, or NaN.

        It compares bits: a compiler may take for granted that there is no NaN.
        """
        if self.wild:
            size = t.Binary("&", t.call("bitcast<u32>", value), _SIZE)
            yield t.If(size > most, (t.Assign(self.wild, t.ONE),))

    def scan(self, own: t.Expr, body: list[t.Stmt]) -> tuple[t.Expr, t.Expr]:
        """Scan the steps of all lanes; return those before the own one, and all, joined.

        In the order of the lanes: `affine_then` does not commute.
        """
        shader, shared, lane = self.shader, self.shared, self.shader.lane
        side, apart, before, whole = (
            t.Ident(shader.fresh(name)) for name in ("side", "apart", "before", "whole")
        )
        mine = side + lane

        def take(distance: t.Expr) -> t.Stmt:
            other = shared[t.Binary("-", mine, distance)]
            return t.If(lane >= distance, (t.Assign(own, self.then(other, own)),))

        step = (
            *self._check(t.Member(own, "x"), MOST_GROWTH),
            t.Assign(shared[mine], own),
            t.BARRIER,
            *(take(apart * number) for number in range(1, JOINED)),
            t.Assign(side, t.Binary("-", t.u32(self.lanes), side)),
        )
        further = t.Assign(apart, t.u32(JOINED), "*=")
        earlier = t.Assign(before, shared[t.Binary("-", mine, t.ONE)])
        body += (
            t.Var(side.name, t.ZERO),
            t.For(apart.name, t.ONE, apart < t.u32(self.lanes), further, step),
            t.Assign(shared[mine], own),
            t.BARRIER,
            t.Var(before.name, NO_STEP),
            t.If(lane > 0, (earlier,)),
            t.Let(whole.name, shared[side + (self.lanes - 1)]),
        )
        return before, whole

    def finish(self, cut: Cut, summary: str, name: str) -> DispatchShader:
        """Return the shader."""
        stage, is_part = self.stage, bool(name)
        rows, length = domain_size(stage.others), extent_size(cut.index.extent)
        groups: host.Size = rows * cut.count if is_part else rows
        tiles = host.ceil_div(cut.length if is_part else length, cut.tile)
        return self.shader.finish(
            self.body,
            groups=groups,
            workgroup_size=self.lanes,
            summary=summary,
            variant=f"{name}{'aligned' if self.names else 'edge'}",
            trips=tiles * 6 + MAX_PARTS // self.lanes,
        )

    # The steps of a lane

    def _own(
        self, first: t.Expr, end: t.Expr, tile: list[t.Stmt]
    ) -> tuple[t.Ident, list[t.Expr], list[dict[Load, t.Expr]]]:
        """Join the steps of a lane; return them, and for each four its place and reads."""
        shader = self.shader
        own, place = (t.Ident(shader.fresh(name)) for name in ("own", "place"))
        tile += (
            t.Let(place.name, first + shader.lane * STEPS),
            t.Var(own.name, NO_STEP),
        )
        places: list[t.Expr] = [place + at for at in range(0, STEPS, LANES)]
        return own, places, [self._own_four(own, each, end, tile) for each in places]

    def _own_four(
        self, own: t.Expr, place: t.Expr, end: t.Expr, tile: list[t.Stmt]
    ) -> dict[Load, t.Expr]:
        """Join four steps to the own one; return the vectors that were read."""
        shader = self.shader
        steps, whole = self.to.nested({}), dict[Load, t.Expr]()
        if self.names:
            self._at_block(steps, place)
            for load in in_blocks(self.stage, self.names):
                held = t.Ident(shader.fresh(f"{load.tensor.name}_4"))
                assert isinstance(load.type, Scalar), "vectors are of scalars"
                tile.append(t.Var(held.name, type=wgsl_type(load.type, LANES)))
                steps.block.append(t.Assign(held, vector_read(steps, load)))
                whole[load] = held
        for number in range(LANES):
            turn, inside = self._turn(steps, place, number, end)
            visit = of_component(turn, self._component(number), whole)
            for free in self.step.free:
                turn.define(free.local, visit(free.value))
            parts = (self.step.factor, self.step.term, self.step.forgets)
            values = tuple(turn.lower(visit(part)).expr for part in parts)
            turn.block.append(t.Assign(own, self.then(own, t.Call("vec3f", values))))
            self._put(steps, turn, number, inside)
        tile.append(t.If(place < end, tuple(steps.block)))
        return whole

    def _take(
        self, steps: Lowerer, place: t.Expr, end: t.Expr, whole: dict[Load, t.Expr]
    ) -> None:
        """Take the four steps, and do what the stage does with each."""
        written = dict[str, t.Expr]()
        if self.names:
            self._at_block(steps, place)
            written = declare_written(steps, self.stage)
        for number in range(LANES):
            turn, inside = self._turn(steps, place, number, end)
            at = turn.at[self.index]
            if self.names:
                component = self._component(number)
                write_turn(turn, self.stage, at, component, whole, written)
            else:
                turns = turns_of(self.stage)
                write_steps(turn, replace(self.stage, steps=turns, loop=None))
                finish_turn(turn, self.stage, at)
            self._put(steps, turn, number, inside)
        if self.names:
            store_written(steps, self.stage, written)

    def _at_block(self, steps: Lowerer, place: t.Expr) -> None:
        """Name the first element of a lane's four, which follow each other in memory."""
        first = t.Ident(self.shader.fresh("block"))
        length = self.shader.extent(self.index.extent)
        back = t.Binary("-", length - LANES, place)
        descending = loop_of(self.stage).descending
        steps.block.append(t.Let(first.name, back if descending else place))
        steps.at[self.index] = first

    def _turn(
        self, steps: Lowerer, place: t.Expr, number: int, end: t.Expr
    ) -> tuple[Lowerer, t.Expr | None]:
        """Return the lowerer of one of the four steps, and the condition that it exists."""
        if self.names:
            first = steps.at[self.index]
            offset = COMPONENTS.index(self._component(number))
            return steps.nested({self.index: first + offset}), None
        at, element = place + number, t.Ident(self.shader.name(self.index.name))
        turn = steps.nested({self.index: element})
        length = self.shader.extent(self.index.extent)
        back = t.Binary("-", length - 1, at)
        descending = loop_of(self.stage).descending
        turn.block.append(t.Let(element.name, back if descending else at))
        return turn, at < end

    def _component(self, number: int) -> str:
        descending = loop_of(self.stage).descending
        return COMPONENTS[LANES - 1 - number if descending else number]

    @staticmethod
    def _put(steps: Lowerer, turn: Lowerer, number: int, inside: t.Expr | None) -> None:
        body = tuple(turn.block)
        block = t.Block(f"step {number}", body)
        steps.block.append(block if inside is None else t.If(inside, body))
