"""Strategies `recur` and `loop`: one invocation per element of the other indices.

It goes along the index of a recurrence in order, and keeps the turns before in variables.
`recur` stores something in each turn; `loop` only what is left after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.stages import Define, Loop, Write
from kerngen.plan.size import ALWAYS, ZERO, Size, ceil_div
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import start_invocation, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.settling import same_bits, settles
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.steps import write_steps
from kerngen.schedule.task import Options, Task
from kerngen.schedule.trips import loop_trips
from kerngen.schedule.values import Value
from kerngen.shader import tree as t

SIZE: Final = 64


def fits_recur(task: Task) -> str:
    """Say why a stage is no recurrence that registers can hold; empty if it is."""
    loop = task.stage.loop
    if loop is None:
        return "the stage is no recurrence"
    if not loop.states:
        return "each step reads other elements of the one before"
    return ""


def fits_loop(task: Task) -> str:
    """Say why a stage is none of which only the end is stored; empty if it is."""
    refusal = fits_recur(task)
    if refusal:
        return refusal
    stored = [s.tensor.name for s in _in_turns(task) if isinstance(s, Write)]
    return f"'{stored[0]}' is stored in every turn" if stored else ""


def _in_turns(task: Task) -> list[Define | Write]:
    loop = _loop_of(task)
    return [*task.stage.steps[loop.first : loop.end]]


def _loop_of(task: Task) -> Loop:
    assert task.stage.loop is not None, "the strategy fits recurrences alone"
    return task.stage.loop


def lower_recurrence(task: Task, options: Options) -> Iterator[Variant]:
    """Yield one shader: a serial loop along the recurrence in each invocation."""
    del options
    yield Variant("", ALWAYS, (_shader(task),))


def _shader(task: Task) -> Shader:
    shader, stage, loop = ShaderBuilder(task, {}), task.stage, _loop_of(task)
    body, at = start_invocation(shader, SIZE, shader.size(stage.others))
    lowerer = Lowerer(shader, {}, body)
    lowerer.at.update(unravel(shader, body, stage.others, at))
    outer = replace(stage, domain=stage.others, loop=None)
    write_steps(lowerer, replace(outer, steps=stage.steps[: loop.first]))
    _declare_registers(lowerer, loop)
    body.append(_turns(lowerer, task))
    write_steps(lowerer, replace(outer, steps=stage.steps[loop.end :]))
    return shader.finish(
        body,
        groups=ceil_div(domain_size(stage.others), SIZE),
        workgroup_size=SIZE,
        summary=f"one invocation per element, along {stage.domain[loop.axis].name}.",
        trips=_trips(task),
    )


def _declare_registers(lowerer: Lowerer, loop: Loop) -> None:
    """Declare what turns leave to later ones, and to the end; WGSL fills it with zeros."""
    kept = [local for state in loop.states for local in state.before]
    kept += [capture.local for capture in loop.captures]
    for local in kept:
        name = lowerer.shader.name(local.name)
        lowerer.block.append(t.Var(name, type=wgsl_type(local.type)))
        lowerer.locals[local.name] = Value(t.Ident(name))


def _turns(lowerer: Lowerer, task: Task) -> t.Stmt:
    """Return the loop, which computes an element in each turn."""
    stage, loop = task.stage, _loop_of(task)
    index = stage.domain[loop.axis]
    shader = lowerer.shader
    end, name = shader.extent(index.extent), shader.name(index.name)
    counter = shader.fresh("turn") if loop.descending else name
    turn = lowerer.nested({index: t.Ident(name)})
    if loop.descending:
        turn.block.append(t.Let(name, t.Binary("-", end - 1, t.Ident(counter))))
    steps = stage.steps[loop.first : loop.end]
    write_steps(turn, replace(stage, steps=steps, loop=None))
    for capture in loop.captures:
        kept, value = (
            lowerer.locals[x.name].expr for x in (capture.local, capture.source)
        )
        keep: t.Stmt = t.Assign(kept, value)
        if capture.at:
            at = lowerer.locals[capture.at.name].expr
            here = t.Binary("==", at, t.call("i32", t.Ident(name)))
            keep = t.If(here, (keep,))
        turn.block.append(keep)
    if settles(stage):
        turn.block.append(_end_early(lowerer, loop, t.Ident(name)))
    for state in loop.states:
        values = [lowerer.locals[x.name].expr for x in (state.now, *state.before)]
        pairs = [*zip(values[1:], values, strict=False)]
        turn.block.extend(t.Assign(old, new) for old, new in reversed(pairs))
    return t.count_up(counter, 0, end, 1, *turn.block)


def _end_early(lowerer: Lowerer, loop: Loop, turn: t.Expr) -> t.Stmt:
    """Return what leaves the loop at the first turn that is like the one before."""
    same = (
        same_bits(
            state,
            lowerer.locals[state.now.name].expr,
            lowerer.locals[state.before[0].name].expr,
        )
        for state in loop.states
    )
    return t.If(t.all_of(t.Binary(">", turn, t.ZERO), *same), (t.Break(),))


def _trips(task: Task) -> Size:
    stage = task.stage
    own = extent_size(stage.domain[_loop_of(task).axis].extent)
    inner = loop_trips(task, {})
    return own * (inner + 1) if inner != ZERO else own
