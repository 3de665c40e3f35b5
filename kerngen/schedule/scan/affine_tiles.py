"""The shader of an affine recurrence's tile: join each lane's steps, scan those, do all steps.

A joined step is a `vec3f`: x is its factor, y its term, and z is 1 if it forgets the state
before it.  For `h[t] = a * h[t - 1] + b`, with 64 lanes of eight steps:

    var own = vec3f(1.0, 0.0, 0.0);                      // 1 * h + 0: no step
    own = affine_then(own, vec3f(a, b, 0.0));            // eight times
    ...                                                  // scan: `before`, `whole`
    h_before = affine_then(vec3f(1.0, state, 0.0), before).y;
    ...                                                  // eight steps, as in a loop
    state = affine_then(vec3f(1.0, state, 0.0), whole).y;
"""

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
from kerngen.schedule.lowering.positions import unravel
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES
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
"""How many steps a lane joins by itself.  `INVOCATIONS` has the measurements."""

INVOCATIONS: Final = 64
"""How many lanes share a row.

The scan over the lanes is most of the work.  On an H200, an average of 4,096 rows of 4,096
takes 54 us with eight steps and 64 lanes; with four steps and 256 lanes it took 76.  65,536
rows of 512, in which most of 256 lanes had nothing to do, take 87 us and took 260.  With 16
steps, whose reads are too far apart, the two take 65 and 109 us.
"""

JOINED_STEP: Final = Vector(Scalar.F32, 3)
"""The type of a joined step: its factor, its term, and 1 if it forgets the state before."""

NO_STEP: Final = t.Call("vec3f", (t.Literal("1.0"), t.Literal("0.0"), t.Literal("0.0")))
"""The step that leaves a state as it is: `1 * h + 0`."""


MOST_GROWTH: Final = t.Literal("0x40000000u")
"""The bits of 2.0: a row with a larger joined factor is computed again, by a loop.

A larger factor may overflow; and where large terms cancel each other, it may leave little
but their rounding errors.
"""

LARGEST: Final = t.Literal("0x7f7fffffu")
"""The bits of the largest finite f32: a row with a larger state is computed again, by a loop.

The states before and behind each lane's steps are compared with it.  A loop keeps an
infinite state from then on.  A scan may not: a joined factor that has become 0 makes NaN of
it, and a state that overflows in a loop may be finite where later steps were joined first.
"""

_SIZE: Final = t.Literal("0x7fffffffu")
"""A mask of all bits of an f32 but its sign.  What is left orders numbers by size, NaN last."""


@final
@dataclass(frozen=True)
class AffineTiles:
    """Builds a shader that goes over a row of an affine recurrence, tile by tile.

    - `step`: the step's factor, term and `forgets`
    - `lanes`: how many lanes share a row
    - `names`: the tensors that are bound as arrays of vectors of four
    - `body`: the shader's statements so far; `to` lowers expressions into it
    - `shared`: a joined step of each lane in workgroup memory, twice
    """

    task: Task
    step: AffineStep
    shader: ShaderBuilder
    lanes: int
    names: set[str]
    body: list[t.Stmt]
    to: Lowerer
    shared: t.Expr
    wild: t.Ident | None = None
    """The lane's variable that is 1 if its row is to be computed again; None without `redo`."""

    @classmethod
    def start(
        cls, task: Task, lanes: int, names: set[str], *, redo: bool = False
    ) -> AffineTiles:
        """Begin a shader: declare its workgroup memory, and with `redo` the lane's flag."""
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
        """Append a row's index values, and a declaration of the state before a step."""
        others = self.stage.others
        if others:
            self.to.at.update(unravel(self.shader, self.body, others, row))
        declare_registers(self.to, loop_of(self.stage))

    def then(self, first: t.Expr, second: t.Expr) -> t.Expr:
        """Return two steps joined to one: `affine_then(first, second)`."""
        return t.call(self.shader.helper("affine_then", 1), first, second)

    def from_(self, value: t.Expr, step: t.Expr) -> t.Expr:
        """Return the state after a joined step, given the state before it.

        In WGSL:

            affine_then(vec3f(1.0, value, 0.0), step).y
        """
        state = t.Call("vec3f", (t.Literal("1.0"), value, t.Literal("0.0")))
        return t.Member(self.then(state, step), "y")

    def join(self, start: t.Expr, end: t.Expr) -> t.Expr:
        """Append a loop that joins all steps of a part; return the result, in every lane."""
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
        """Append the loop over tiles that does all steps of a part and stores the results.

        The state begins as `carried`, or as 0 if that is None.
        """
        state, first = (t.Ident(self.shader.fresh(n)) for n in ("state", "first"))
        tile = list[t.Stmt]()
        # Join the lane's steps, and scan those of all lanes.
        own, places, read = self._own(first, end, tile)
        before, all_ = self.scan(own, tile)
        # Set the register of the state before, `h_before`, to that at the lane's first step.
        (register,) = loop_of(self.stage).states[0].before
        named = self.to.locals[register.name].expr
        tile.append(t.Assign(named, self.from_(state, before)))
        tile += self._check(named, LARGEST)
        # Do the lane's steps, four at a time, with the vectors read above.
        for place, whole in zip(places, read, strict=True):
            steps = self.to.nested({})
            self._take(steps, place, end, whole)
            tile.append(t.If(place < end, tuple(steps.block)))
        tile += self._check(named, LARGEST)
        # Behind the barrier, the next tile overwrites the workgroup memory.
        tile += (t.Assign(state, self.from_(state, all_)), t.BARRIER)
        self.body.extend(
            (
                t.Var(state.name, carried or t.Literal("0.0")),
                t.count_up(first.name, start, end, self.lanes * STEPS, *tile),
            )
        )

    def note_nothing(self, row: t.Expr) -> None:
        """Append the statement that clears a row's flag: `atomicStore(&wild[row], 0u)`."""
        clear = self._change("atomicStore", row, t.ZERO)
        self.body.append(t.If(self.shader.lane.equals(0), (clear,)))

    def note(self, row: t.Expr) -> None:
        """Append the statement that sets a row's flag if the lane's is set.

        In WGSL:

            if (grows > 0u) { atomicOr(&wild[row], 1u); }
        """
        if self.wild is not None:
            self.body.append(
                t.If(self.wild > 0, (self._change("atomicOr", row, t.ONE),))
            )

    def _change(self, change: str, row: t.Expr, value: t.Expr) -> t.Stmt:
        place = t.Unary("&", self.shader.atomics("wild").expr[row])
        return t.Evaluate(t.call(change, place, value))

    def _check(self, value: t.Expr, most: t.Expr) -> Iterator[t.Stmt]:
        """Yield the statement that sets the lane's flag if a number is larger, or NaN.

            if ((bitcast<u32>(own.x) & 0x7fffffffu) > 0x40000000u) { grows = 1u; }

        It compares bits, as WGSL lets a compiler assume that no float is NaN.
        """
        if self.wild:
            size = t.Binary("&", t.call("bitcast<u32>", value), _SIZE)
            yield t.If(size > most, (t.Assign(self.wild, t.ONE),))

    def scan(self, own: t.Expr, body: list[t.Stmt]) -> tuple[t.Expr, t.Expr]:
        """Append to `body` the scan of all lanes' joined steps; return `before` and `whole`.

        `before` joins the steps of all lanes before the own one, `whole` those of all
        lanes.  The steps over workgroup memory are those of `LaneScan` in `tile.py`, with
        the earlier lane's step always first, as `affine_then` does not commute:

            if (lane >= apart) { own = affine_then(steps[side + lane - apart], own); }
        """
        shader, shared, lane = self.shader, self.shared, self.shader.lane
        side, apart, before, whole = (
            t.Ident(shader.fresh(name)) for name in ("side", "apart", "before", "whole")
        )
        mine = side + lane

        def take(distance: t.Expr) -> t.Stmt:
            other = shared[t.Binary("-", mine, distance)]
            return t.If(lane >= distance, (t.Assign(own, self.then(other, own)),))

        # One step of the scan: note large factors, share, join three lanes, change sides.
        step = (
            *self._check(t.Member(own, "x"), MOST_GROWTH),
            t.Assign(shared[mine], own),
            t.BARRIER,
            *(take(apart * number) for number in range(1, JOINED)),
            t.Assign(side, t.Binary("-", t.u32(self.lanes), side)),
        )
        further = t.Assign(apart, t.u32(JOINED), "*=")
        # At the end, `before` is the left neighbour's step, `whole` that of the last lane.
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
        """Return the finished shader; `name` is a prefix of its variant, "" for whole rows."""
        stage, is_part = self.stage, bool(name)
        rows, length = domain_size(stage.others), extent_size(cut.index.extent)
        groups: host.Size = rows * cut.count if is_part else rows
        tiles = host.ceil_div(cut.length if is_part else length, cut.tile)
        # A bound of loop turns: a tile is one, with five inside for up to 1,024 lanes.
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
        """Write the joining of a lane's steps, in groups of four.

        Returns the variable of the joined step, the place of each group, and the vectors
        that each has read.
        """
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
        """Write the joining of four steps to `own`; return the vectors that were read.

        In WGSL:

            var x_4: vec4f;                             // read again by `_take`
            if (place < u.n) {
                let block = place;
                x_4 = x[row * (u.n >> 2u) + (block >> 2u)];
                {  // step 0
                    own = affine_then(own, vec3f(factor, term, forgets));
                }
                ...
            }
        """
        shader = self.shader
        steps, whole = self.to.nested({}), dict[Load, t.Expr]()
        # Vectors are declared outside of the `if`, as the steps themselves need them later.
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
        """Write the four steps themselves: compute each state, and store the results."""
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
        """Write the index of a group's first element in memory.

        Where the recurrence descends, place 0 is the last element: `u.n - 4u - place`.
        """
        first = t.Ident(self.shader.fresh("block"))
        length = self.shader.extent(self.index.extent)
        back = t.Binary("-", length - LANES, place)
        descending = loop_of(self.stage).descending
        steps.block.append(t.Let(first.name, back if descending else place))
        steps.at[self.index] = first

    def _turn(
        self, steps: Lowerer, place: t.Expr, number: int, end: t.Expr
    ) -> tuple[Lowerer, t.Expr | None]:
        """Return the lowerer of one of four steps, and the condition that it is in the row.

        There is no condition where groups of four are read whole (`aligned`).
        """
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
        """Return the vector component of one of four steps: x first, or w if it descends."""
        descending = loop_of(self.stage).descending
        return COMPONENTS[LANES - 1 - number if descending else number]

    @staticmethod
    def _put(steps: Lowerer, turn: Lowerer, number: int, inside: t.Expr | None) -> None:
        """Write a step's statements as a block of their own, or under its condition."""
        body = tuple(turn.block)
        block = t.Block(f"step {number}", body)
        steps.block.append(block if inside is None else t.If(inside, body))
