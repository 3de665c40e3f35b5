"""Ring buffers for recurrences: only the steps that are read again stay in memory.

A recurrence that reads other elements of the step before is stored in memory.  Where only
its last step is read afterwards, two steps are enough, which take turns:

    Before:  x[i, s] = ... x[j, s - 1] ...;          v[i] = x[i, n - 1];
    After:   x[i, s % 2] = ... x[j, (s - 1) % 2] ...;    v[i] = x[i, (n - 1) % 2];
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.linear import Lengths
from kerngen.ir.memory import Struct
from kerngen.ir.staging.hoisting import Fresh
from kerngen.ir.staging.recurring import is_end
from kerngen.ir.staging.stages import Define, Stage, StagedKernel, Step, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value


def with_rings(staged: StagedKernel, fresh: Fresh) -> StagedKernel:
    """Return stages whose recurrences through memory store only the steps that they read back.

    The step being computed is stored, too.  A recurrence of which another stage reads any
    step but the last one stays as it is.
    """
    lengths = Lengths.of(staged.kernel.derived)
    for stage in staged.stages:
        ring = _ring(stage, staged.stages, lengths)
        if ring is not None:
            stages = tuple(ring.stage(each, fresh) for each in staged.stages)
            kept = tuple(map(ring.kept, staged.temporaries))
            staged = replace(staged, stages=stages, temporaries=kept)
    return staged


def _ring(stage: Stage, stages: Iterable[Stage], lengths: Lengths) -> _Ring | None:
    """Return the ring of a stage's recurrence, or None if it needs none.

    It has as many steps as a step reads back, and its own.
    """
    loop = stage.loop
    if loop is None or loop.states:
        return None
    (step,) = stage.steps
    assert isinstance(step, Write), "a recurrence through memory stores its steps"
    extent = stage.domain[loop.axis].extent
    is_read_last = all(
        is_end(load.subscripts[loop.axis], extent, lengths, descending=loop.descending)
        for other in stages
        if other is not stage
        for load in other.reads
        if load.tensor == step.tensor
    )
    if not is_read_last:
        return None
    return _Ring(step.tensor, loop.axis, loop.distance + 1)


@final
@dataclass(frozen=True)
class _Ring:
    """A temporary whose `axis` has `length` steps in turn: step s is at `s % length`."""

    tensor: ir.Tensor
    axis: int
    length: int

    def kept(self, tensor: ir.Tensor) -> ir.Tensor:
        """Return a tensor, with its shorter axis if it is the ring's."""
        if tensor != self.tensor:
            return tensor
        extents = list(tensor.extents)
        extents[self.axis] = self.length
        return replace(tensor, extents=tuple(extents))

    def stage(self, stage: Stage, fresh: Fresh) -> Stage:
        """Return a stage that reads and writes the ring."""
        steps = tuple(new for step in stage.steps for new in self._step(step, fresh))
        loop, more = stage.loop, len(steps) - len(stage.steps)
        if loop and more:
            loop = replace(loop, end=loop.end + more)
        return replace(stage, steps=steps, loop=loop)

    def _step(self, step: Step, fresh: Fresh) -> Iterable[Step]:
        value = self._read(step.value)
        if isinstance(step, Define) or step.tensor != self.tensor:
            return (replace(step, value=value),)
        element = self.tensor.element
        assert not isinstance(element, Struct), "lets are values"
        local = ir.LocalValue(fresh.name(f"{self.tensor.name}_new"), element)
        kept = replace(step, tensor=self.kept(self.tensor), value=local, text="")
        return Define(local, value, step.text), kept

    def _read(self, expr: ir.Expr) -> ir.Expr:
        inner = map_children(expr, self._read)
        if not isinstance(inner, ir.Load) or inner.tensor != self.tensor:
            return inner
        places = list(inner.subscripts)
        value, length = subscript_value(places[self.axis]), self.length
        if value.type is not Scalar.I32:
            value = ir.Cast(value, Scalar.I32)
        by = ir.Constant(length, Scalar.I32)
        places[self.axis] = ir.Clamped(ir.BuiltinCall("mod", (value, by), Scalar.I32))
        return replace(inner, tensor=self.kept(self.tensor), subscripts=tuple(places))
