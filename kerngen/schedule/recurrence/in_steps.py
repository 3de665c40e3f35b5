"""Strategy `steps`: a dispatch for each step of a recurrence.

    let u[s, i, j] = ... u[s - 1, i - 1, j] + u[s - 1, i, j + 1] ...;

A step reads other elements of the step before, so that all of a step is done before the
next one begins.  All dispatches have the same uniform and the same buffers: each workgroup
counts the steps in a scratch buffer.  The first dispatch, whose pipeline's constant FIRST
is 1, begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.nodes import Index
from kerngen.ir.staging.stages import Write
from kerngen.ir.types import Scalar
from kerngen.plan.size import ALWAYS, Size, add, ceil_div, maximum, minimum
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.sizes import domain_size, extent_size, loop_trips, to_wgsl
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t

SIZE: Final = 64
"""The lanes of a workgroup."""

_COUNTS: Final = "counts"
"""The scratch buffer with the number of the next step, for each workgroup."""

_BARRIER: Final = t.Evaluate(t.Call("storageBarrier", ()))


def fits_steps(task: Task) -> str:
    """Return why `steps` does not fit the task's stage, or "" if it does."""
    loop = task.stage.loop
    if loop is None:
        return "the stage is no recurrence"
    return "each element needs only its own of the step before" if loop.states else ""


def lower_steps(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the only variant, of two shaders: for the first step, and for each further step."""
    del options
    shaders = (_shader(task, first=1), _shader(task, first=0))
    name = task.scratch_name(_COUNTS)
    again = maximum(add(_turns(task), -1), 0)
    scratch = (Scratch(name, add(_groups(task), 1)),)
    yield Variant("", ALWAYS, shaders, scratch, again)


def _turns(task: Task) -> Size:
    """Return the number of steps."""
    assert task.stage.loop is not None, "the strategy fits recurrences alone"
    return extent_size(task.stage.domain[task.stage.loop.axis].extent)


def _groups(task: Task) -> Size:
    """Return the number of workgroups of a step."""
    return ceil_div(domain_size(task.stage.others), SIZE)


def _shader(task: Task, *, first: int) -> DispatchShader:
    """Return the shader of a step; `first` is the value of the constant FIRST."""
    shader, stage = ShaderBuilder(task, {}), task.stage
    body: list[t.Stmt] = []
    at = _place(shader, task, body, shader.override("FIRST", first))
    lowerer = Lowerer(shader, at, body)
    loop = stage.loop
    assert loop is not None, "the strategy fits recurrences alone"
    along = stage.domain[loop.axis]
    # The step's element is stored last, at another place if the tensor is a ring.
    *before, write = stage.steps
    assert isinstance(write, Write), "what goes through memory is stored"
    write_steps(lowerer, replace(stage, steps=tuple(before), loop=None))
    # A tensor with fewer steps than the recurrence is a ring, whose steps take turns.
    length = write.tensor.extents[loop.axis]
    if length != along.extent:  # a ring: steps take turns
        lowerer.at[along] = at[along] % shader.extent(length)
    write_steps(lowerer, replace(stage, steps=(write,), loop=None))
    return shader.finish(
        body,
        groups=minimum(_turns(task), 1) * _groups(task),
        workgroup_size=SIZE,
        summary=f"one invocation per element, a dispatch per {along.name}.",
        trips=loop_trips(task, {}),
    )


def _place(
    shader: ShaderBuilder, task: Task, body: list[t.Stmt], first: t.Expr
) -> dict[Index, t.Expr]:
    """Write the number of the step, and the indices of the invocation's element.

    In WGSL:

        let slot = min(group, groups);
        var turn = counts[slot];
        if (FIRST == 1u) { turn = 0u; }
        storageBarrier();
        if (lane == 0u) { counts[slot] = turn + 1u; }

    Each workgroup has its own count, as the workgroups of a dispatch run in any order.
    Workgroups past the last one, where the grid is folded, share one more count, which
    nothing reads.
    """
    stage, loop = task.stage, task.stage.loop
    assert loop is not None, "the strategy fits recurrences alone"
    counts = shader.scratch(_COUNTS, Scalar.U32, written=True)
    group, slot, turn = (t.Ident(shader.fresh(x)) for x in ("group", "slot", "turn"))
    last = to_wgsl(_groups(task), shader)
    # All lanes read the count, then lane 0 changes it.
    body += (
        t.Let(group.name, linear_group(shader)),
        t.Let(slot.name, t.call("min", group, last)),
        t.Var(turn.name, counts.load(slot)),
        t.If(t.Binary("==", first, t.ONE), (t.Assign(turn, t.ZERO),)),
        _BARRIER,
        t.If(
            t.Binary("==", shader.lane, t.ZERO),
            (counts.store(slot, turn + 1),),
        ),
    )
    # Only now may lanes past the last element return: all must reach the barrier.
    element = t.Ident(shader.fresh("element"))
    body += (
        t.Let(element.name, group * SIZE + shader.lane),
        t.If(element >= shader.size(stage.others), (t.Return(),)),
    )
    at = unravel(shader, body, stage.others, element)
    index = stage.domain[loop.axis]
    place = t.Binary("-", shader.extent(index.extent) - 1, turn)
    name = shader.name(index.name)
    body.append(t.Let(name, place if loop.descending else turn))
    return {**at, index: t.Ident(name)}
