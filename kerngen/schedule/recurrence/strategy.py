"""Strategies `recur` and `loop`: one invocation runs all turns of a recurrence's row.

A turn computes one element along the recurrence's index, t; a row is all turns at one value
of the other indices.  The values of the turns before are in variables, its registers:

    var h_before: f32;
    for (var t = 0u; t < u.n; t++) {
        let h = select(x[...], u.decay * h_before + ..., i32(t) > 0);
        y[...] = h;                                      // `recur` alone
        h_before = h;
    }

`recur` stores something in each turn; `loop` only what is left after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.staging.stages import Stage, Write
from kerngen.plan.size import ALWAYS, NEVER, ZERO, Size, ceil_div, divides
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import start_invocation, unravel
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.recurrence.blocks import in_vectors, turns_of, write_blocks
from kerngen.schedule.recurrence.turn import declare_registers, finish_turn, loop_of
from kerngen.schedule.sizes import domain_size, extent_size, loop_trips
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t

SIZE: Final = 64
"""The lanes of a workgroup."""


def fits_recur(task: Task) -> str:
    """Return why `recur` does not fit a stage, or "" if it does."""
    loop = task.stage.loop
    if loop is None:
        return "the stage is no recurrence"
    if not loop.states:
        return "each step reads other elements of the one before"
    return ""


def fits_loop(task: Task) -> str:
    """Return why `loop` does not fit a stage, or "" if it does: its turns store nothing."""
    refusal = fits_recur(task)
    if refusal:
        return refusal
    stored = [s.tensor.name for s in turns_of(task.stage) if isinstance(s, Write)]
    return f"'{stored[0]}' is stored in every turn" if stored else ""


def lower_recurrence(task: Task, options: Options) -> Iterator[Variant]:
    """Yield a variant of four turns at a time, where sizes allow it, and one for any size."""
    del options
    stage = task.stage
    names, extent = in_vectors(stage), stage.domain[loop_of(stage).axis].extent
    aligned = divides(LANES, extent_size(extent))
    if names and aligned != NEVER:
        yield Variant("aligned", aligned, (row_shader(task, names),))
    yield Variant("edge" if names else "", ALWAYS, (row_shader(task, set()),))


def row_shader(
    task: Task,
    names: set[str],
    leave: Callable[[ShaderBuilder, t.Expr], Iterable[t.Stmt]] | None = None,
) -> DispatchShader:
    """Return the shader with an invocation for each row.

    `names` are the tensors that are read and written as vectors of four turns.  If only some
    rows are to be computed, `leave` returns statements that return from the others: it gets the
    row's number.
    """
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    stage, loop = task.stage, loop_of(task.stage)
    body, at = start_invocation(shader, SIZE, shader.size(stage.others))
    if leave:
        body += leave(shader, at)
    lowerer = Lowerer(shader, {}, body)
    lowerer.at.update(unravel(shader, body, stage.others, at))
    # The steps before the loop, the loop, and the steps behind it, with what is left.
    outer = replace(stage, domain=stage.others, loop=None)
    write_steps(lowerer, replace(outer, steps=stage.steps[: loop.first]))
    declare_registers(lowerer, loop)
    if names:
        body.append(write_blocks(lowerer, stage, names))
    else:
        body.append(_turns(lowerer, stage))
    write_steps(lowerer, replace(outer, steps=stage.steps[loop.end :]))
    along = stage.domain[loop.axis].name
    how = ", four turns at a time" if names else ""
    return shader.finish(
        body,
        groups=ceil_div(domain_size(stage.others), SIZE),
        workgroup_size=SIZE,
        summary=f"one invocation per element, along {along}{how}.",
        variant="redo" if leave else "" if names or not in_vectors(stage) else "edge",
        trips=_trips(task, LANES if names else 1),
    )


def _turns(lowerer: Lowerer, stage: Stage) -> t.Stmt:
    """Return the loop over the turns, an element in each.

    A descending recurrence counts turns up, too, and computes the element `n - 1 - turn`.
    """
    loop, shader = loop_of(stage), lowerer.shader
    index = stage.domain[loop.axis]
    end, name = shader.extent(index.extent), shader.name(index.name)
    counter = shader.fresh("turn") if loop.descending else name
    turn = lowerer.nested({index: t.Ident(name)})
    if loop.descending:
        turn.block.append(t.Let(name, t.Binary("-", end - 1, t.Ident(counter))))
    write_steps(turn, replace(stage, steps=turns_of(stage), loop=None))
    finish_turn(turn, stage, t.Ident(name))
    return t.count_up(counter, 0, end, 1, *turn.block)


def _trips(task: Task, turns: int) -> Size:
    """Return the number of turns of an invocation's loops, if a round does some turns."""
    stage, inner = task.stage, loop_trips(task, {})
    own = extent_size(stage.domain[loop_of(stage).axis].extent)
    return ceil_div(own, turns) + own * inner if inner != ZERO else ceil_div(own, turns)
