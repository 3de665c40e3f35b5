"""Strategy `rows`: one workgroup does whole rows, through all stages that share them.

The shortest rows have a lane each, short ones a few lanes, several to a workgroup; a row
of up to 4096 elements is read once, into registers; longer ones are read again by each
pass, and so are the shortest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Extent, Index, Tensor
from kerngen.ir.stages import Stage
from kerngen.schedule.addresses import is_contiguous
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.rows_memory import hold, loaded, reread
from kerngen.schedule.rows_plan import RowPlan, Store, expressions, plan_rows
from kerngen.schedule.rows_run import Run, indices_in, names_of, run_of, writes
from kerngen.schedule.rows_shader import INVOCATIONS, SHORT, RowWriter, Shape
from kerngen.schedule.task import Options, Task, host_multiple, host_product
from kerngen.schedule.trips import serial_turns
from kerngen.schedule.values import LANES

ALIGNED: Final = (
    ("upto32", Shape(4, 2, LANES)),
    ("upto128", Shape(8, 4, LANES)),
    ("upto512", Shape(32, 4, LANES)),
    ("upto2048", Shape(128, 4, LANES)),
    ("upto4096", Shape(INVOCATIONS, 4, LANES)),
    ("", Shape(INVOCATIONS, 0, LANES)),
)
"""The variants that read vectors, by what their files are called."""

EDGE: Final = (
    (f"edge_upto{SHORT}", Shape(1, 0, 1)),
    ("edge_upto32", Shape(8, 4, 1)),
    ("edge_upto128", Shape(16, 8, 1)),
    ("edge_upto1024", Shape(128, 8, 1)),
    ("edge", Shape(INVOCATIONS, 0, 1)),
)
"""The variants for rows of any length."""


def fits_rows(task: Task) -> str:
    """Say why `rows` does not fit from the stage on; empty if it does."""
    run = run_of(task)
    return run if isinstance(run, str) else ""


def covers_rows(task: Task) -> int:
    """Return how many stages run together, from the task's on."""
    run = run_of(task)
    return 1 if isinstance(run, str) else len(run.stages)


def lower_rows(task: Task, options: Options) -> Iterator[Variant]:
    """Return variants by the length of a row: in registers first, then any."""
    del options
    run = run_of(task)
    assert isinstance(run, Run), run
    return _RowTask.of(task, run).variants()


@final
@dataclass(frozen=True)
class _RowTask:
    """A run to be lowered; `task.stage` stands for all of its stages."""

    task: Task
    kept: frozenset[Tensor]
    plan: RowPlan

    @classmethod
    def of(cls, task: Task, run: Run) -> _RowTask:
        """Plan a run."""
        stages = task.staged.stages
        written = (tensor for stage in run.stages for tensor in writes(stage))
        kept = frozenset(x for x in written if run.outlives(x, stages))
        steps = tuple(step for stage in run.stages for step in stage.steps)
        together = Stage(names_of(run.stages), run.rows, steps)
        stem = task.stem
        if len(run.stages) == len(stages) > 1:
            stem = stem.removesuffix(f".{task.stage.name}")
        plan = plan_rows(run, kept, _taken(task, run))
        return cls(replace(task, stage=together, stem=stem), kept, plan)

    def variants(self) -> Iterator[Variant]:
        """Yield the variants that rows of some length may take."""
        names = self._vectors()
        aligned = host_multiple(self._last_extents(names), LANES) if names else None
        least, *longer = ((name, shape, "") for name, shape in EDGE)
        shapes = [least, *longer]
        if aligned is not None:
            wide = ((name, shape, aligned) for name, shape in ALIGNED)
            shapes = [least, *wide, *longer]
        for name, shape, when in shapes:
            short = _at_most(self.plan.columns, shape)
            if short is None:
                continue
            condition = " and ".join(filter(None, (when, short)))
            shader = self._shader(name, shape, names if shape.width > 1 else set())
            yield Variant(name or "aligned", condition, (shader,))

    def _vectors(self) -> set[str]:
        """Return the tensors that are read or written in runs along a row."""
        last = self.plan.columns[-1]
        plan = reread(self.plan)
        read = {x.tensor.name for x in loaded(plan) if is_contiguous(x, last)}
        return read | {tensor.name for tensor in self._stores()}

    def _stores(self) -> set[Tensor]:
        each = (action for pass_ in self.plan.passes for action in pass_.each)
        return {action.tensor for action in each if isinstance(action, Store)}

    def _last_extents(self, names: set[str]) -> list[Extent]:
        tensors = {load.tensor for load in loaded(self.plan)} | self._stores()
        ordered = sorted(tensors, key=lambda tensor: tensor.name)
        last = [tensor.extents[-1] for tensor in ordered if tensor.name in names]
        return [self.plan.columns[-1].extent, *last]

    def _shader(self, name: str, shape: Shape, names: set[str]) -> Shader:
        plan, stored = hold(self.plan), self.kept
        if not shape.chunks:
            plan = reread(self.plan)
            stored |= set(self.plan.carried.values())
        shader = ShaderBuilder(self.task, dict.fromkeys(names, LANES))
        body = RowWriter(shader, plan, shape, stored).write()
        rows = host_product(plan.rows)
        return shader.finish(
            body,
            groups=rows if shape.rows == 1 else f"ceil_div({rows}, {shape.rows})",
            workgroup_size=INVOCATIONS,
            summary=_summary(shape),
            variant=name,
            terms=host_product(plan.columns) if len(plan.columns) > 1 else "",
            turns=_turns(plan, shape),
        )


def _taken(task: Task, run: Run) -> frozenset[str]:
    """Return the names that mean something else in the shaders of a run."""
    tensors = (*task.kernel.tensors, *task.staged.temporaries)
    indices = (index for stage in run.stages for index in indices_in(stage))
    return frozenset((*(x.name for x in tensors), *(x.name for x in indices)))


def _at_most(columns: tuple[Index, ...], shape: Shape) -> str | None:
    """Return the host code of "a row fits"; None if it never does, "" if always."""
    if shape.most is None:
        return ""
    lengths = [index.extent for index in columns]
    literal = [length for length in lengths if isinstance(length, int)]
    if len(literal) == len(lengths):
        return "" if math.prod(literal) <= shape.most else None
    return f"{host_product(columns)} <= {shape.most}"


def _summary(shape: Shape) -> str:
    rows = "one row" if shape.rows == 1 else f"{shape.rows} rows"
    length = "" if shape.most is None else f", of up to {shape.most} elements"
    read = "read once" if shape.chunks else "read by each pass"
    return f"{rows} per workgroup{length}, {read}."


def _turns(plan: RowPlan, shape: Shape) -> str:
    """Return how often the loops of a lane turn."""
    turns = [serial_turns(plan.per_row())]
    for pass_ in plan.passes:
        inner = serial_turns(expressions(pass_.each))
        if shape.chunks:
            turns.append(f"{shape.chunks} * ({inner})" if inner else "")
        elif pass_.each:
            own = f"ceil_div({host_product(plan.columns)}, {shape.step})"
            turns.append(f"{own} * (1 + {inner})" if inner else own)
    return " + ".join(filter(None, turns))
