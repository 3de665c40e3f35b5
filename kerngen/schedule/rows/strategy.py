"""Strategy `rows`: a workgroup runs all stages that share their rows, for whole rows.

How rows lie on lanes, their shape, follows from their length:

    up to 7             a lane for each row, which each pass reads again (15, if one pass reads)
    up to 4,096         2 to 256 lanes for each row, which hold it in registers
    up to 16,384        256 lanes with up to 16 vectors each, where registers are enough
    longer              256 lanes; each pass reads the row again, block by block, but for a
                        sum of exp(value - top) (`online.py`)

Rows that can't be read by vectors are held up to 2,048 elements and, where several passes read
them and registers are enough, up to 8,192.

The option `lanes` sets how many lanes share each row, whatever its length; with `subgroups`
they join their partial results by subgroup operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, final

from kerngen.ir.nodes import Extent, Tensor
from kerngen.ir.staging.stages import Stage
from kerngen.plan import size as host
from kerngen.schedule.lowering.addresses import is_contiguous
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.joining import by_subgroups
from kerngen.schedule.lowering.steps import in_runs
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.rows.memory import hold, loaded, read_ahead, reread
from kerngen.schedule.rows.online import merge_sums
from kerngen.schedule.rows.plan import RowPlan, Store, expressions, plan_rows
from kerngen.schedule.rows.run import Run, names_of, run_of
from kerngen.schedule.rows.shader import RowWriter
from kerngen.schedule.rows.shape import INVOCATIONS, Ladder, RowShape
from kerngen.schedule.sizes import all_divisible, at_most, domain_size, serial_trips
from kerngen.schedule.task import Options, Task

SHORT: Final = RowShape(1, 0, 1, limit=7)
"""A lane for each short row, so that nothing is joined.

Neighbouring lanes read addresses a row apart, so that longer rows are quicker on several lanes:
on an H200, the softmax of 700,000 rows of 16 takes 24 us, 113 on a lane each, that of 1,000,000
rows of 10 33 us, 59, but of 5 39 us, 25.
"""

SHORT_ONCE: Final = RowShape(1, 0, 1, limit=15)
"""The same where one pass reads elements: sums of 1,000,000 rows of 10 take 13 us, 22 on four
lanes each, but those of 700,000 rows of 16 26 us, 14."""

ALIGNED: Final = (
    RowShape(2, 2, LANES),
    RowShape(4, 2, LANES),
    RowShape(8, 4, LANES),
    RowShape(32, 4, LANES),
    RowShape(128, 4, LANES),
    RowShape(INVOCATIONS, 4, LANES),
)
"""Lanes and vectors for each lane, where rows are vectors: up to 16, 32, 128, 512, 2,048, 4,096."""

EDGE: Final = (
    RowShape(4, 4, 1),
    RowShape(8, 4, 1),
    RowShape(16, 4, 1),
    RowShape(16, 8, 1),
    RowShape(32, 8, 1),
    RowShape(64, 8, 1),
    RowShape(128, 8, 1),
    RowShape(INVOCATIONS, 8, 1),
)
"""Lanes and elements for each lane, for any row: up to 16, 32, 64, 128, 256, 512, 1,024, 2,048.

Few lanes are idle: on an H200, the softmax of 65,536 rows of 197 takes 30 us on 32 lanes
each, 85 us on 128, and that of 200,000 rows of 50 27 us with 4 elements for each lane, 33 us
with 8.
"""

EDGE_CHUNKS: Final = 32
"""The most single elements of a row that a lane holds: 256 to 1,024 lanes hold rows of up to 8,192
to 32,768."""

LONG_EDGE: Final = (RowShape(INVOCATIONS, 16, 1), RowShape(INVOCATIONS, EDGE_CHUNKS, 1))
"""The same for longer rows that several passes read: up to 4,096 and 8,192.

Workgroups that read their rows again evict each other's from the cache: on an H200, the softmax
of 6,000 rows of 7,001 takes 87 us, 112 where each pass reads the row.
"""

LADDERS: Final = {
    shape: Ladder.of(name, group)
    for name, group in (
        ("upto", ALIGNED),
        ("edge_upto", EDGE),
        ("edge_long", LONG_EDGE),
    )
    for shape in group
}
"""The ladder of each shape: shapes of one ladder are one shader, with other constants."""

LANE_NUMBERS: Final = 64
"""The most numbers of a row that a lane holds in registers."""

GROUP_NUMBERS: Final = 32768
"""The most that all lanes of a workgroup hold: half of the largest devices' registers."""

MANY_CHUNKS: Final = 8
"""Rows beyond the shapes above are held only if a lane has room for this many vectors."""


def fits_rows(task: Task) -> str:
    """Return why no run for `rows` begins with the task's stage, or "" if one does."""
    run = run_of(task)
    return run if isinstance(run, str) else ""


def rows_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that `rows` runs together: the task's own alone if it does not fit."""
    run = run_of(task)
    return (task.stage,) if isinstance(run, str) else run.stages


@final
@dataclass(frozen=True, slots=True)
class RowOptions:
    """How many lanes share a row (None: as suits its length), and if subgroups join them."""

    lanes: int | None
    subgroups: bool


def row_options(options: Options) -> RowOptions:
    """Return the options `lanes` and `subgroups` of a schedule, or their defaults."""
    (lanes,) = options.get("lanes", (None,))
    return RowOptions(lanes, by_subgroups(options))


def suits_rows(task: Task, options: Options) -> str:
    """Return why the number of lanes in `options` can't be used, or "" if it can."""
    del task
    (lanes,) = options.get("lanes", (1,))
    return f"{lanes} lanes are not a power of two" if lanes & (lanes - 1) else ""


def lower_rows(task: Task, options: Options) -> Iterator[Variant]:
    """Return the variants in order of preference; the last one takes rows of any length."""
    run = run_of(task)
    assert isinstance(run, Run), run
    return _RowTask.of(task, run, row_options(options)).variants()


def room(lanes: int) -> int:
    """Return how many numbers of a row a lane can hold in registers, if `lanes` share the row.

    64 for up to 512 lanes, 32 for 1,024.
    """
    return min(LANE_NUMBERS, GROUP_NUMBERS // lanes)


def shapes(wanted: RowOptions, held: int, passes: int) -> Iterator[RowShape]:
    """Yield the row shapes in order of preference: a call takes the first that suits its rows.

    `held` is how many values of each element a lane holds, as they are used more than once;
    `passes` is how many passes read elements.
    """
    lanes = wanted.lanes or INVOCATIONS
    if wanted.lanes is None:
        yield SHORT_ONCE if passes == 1 else SHORT
        yield from ALIGNED
    chunks = room(lanes) // (held * LANES) if held else 0
    if chunks >= MANY_CHUNKS:
        # The greatest power of two of vectors for which there is room.
        yield RowShape(lanes, 1 << chunks.bit_length() - 1, LANES)
    yield RowShape(lanes, 0, LANES)
    if wanted.lanes is None:
        yield from EDGE
    if passes > 1:
        longer = (RowShape(lanes, EDGE_CHUNKS, 1),) if lanes > INVOCATIONS else ()
        listed = LONG_EDGE if wanted.lanes is None else longer
        yield from (x for x in listed if 0 < held * x.chunks <= room(lanes))
    yield RowShape(lanes, 0, 1)


def element_uses(task: Task) -> tuple[int, int]:
    """Return how many values of each element are held, and how many passes read elements.

    Those are held, in registers, that are used more than once.
    """
    run = run_of(task)
    assert isinstance(run, Run), run
    rows = _RowTask.of(task, run, row_options({}))
    return rows.held, rows.passes


def name_of(shape: RowShape) -> str:
    """Return a shape's part of a shader file's name: "" for vectors and rows of any length."""
    edge = "edge" if shape.width == 1 else ""
    limit = "" if shape.most is None else f"upto{shape.most}"
    return "_".join(filter(None, (edge, limit)))


@final
@dataclass(frozen=True)
class _RowTask:
    """A run to be lowered; the stage of `task` has the steps of all its stages.

    `kept` are the tensors of the run that must be stored, as something reads them later.
    """

    task: Task
    wanted: RowOptions
    kept: frozenset[Tensor]
    plan: RowPlan
    _held: dict[int, RowPlan] = field(default_factory=dict[int, RowPlan])
    _ladders: dict[Ladder, DispatchShader] = field(
        default_factory=dict[Ladder, DispatchShader]
    )

    @classmethod
    def of(cls, task: Task, run: Run, wanted: RowOptions) -> _RowTask:
        """Return the task of a run's stages, as one stage with all of their steps."""
        # One stage with the steps of all; its files are named after the kernel alone if the
        # run has all of the kernel's stages.
        stages = task.staged.stages
        written = (tensor for stage in run.stages for tensor in stage.tensors_written)
        kept = frozenset(x for x in written if run.outlives(x, stages))
        steps = tuple(step for stage in run.stages for step in stage.steps)
        together = Stage(names_of(run.stages), run.rows, steps)
        stem = task.stem
        if len(run.stages) == len(stages) > 1:
            stem = stem.removesuffix(f".{task.stage.name}")
        plan = plan_rows(run, kept, _taken(task, run))
        return cls(replace(task, stage=together, stem=stem), wanted, kept, plan)

    @property
    def held(self) -> int:
        """The number of values of each element that are used more than once."""
        return len(hold(self.plan).carried)

    @property
    def passes(self) -> int:
        """The number of passes that read elements."""
        return sum(bool(pass_.each) for pass_ in self.plan.passes)

    def variants(self) -> Iterator[Variant]:
        """Yield a variant for each row shape that the options and the rows' lengths allow."""
        names = self._vectors()
        aligned = (
            all_divisible(self._last_extents(names), LANES) if names else host.NEVER
        )
        columns = self.plan.columns
        # A shape is for rows up to its length, and by vectors where all rows are such.
        for shape in shapes(self.wanted, self.held, self.passes):
            wide = shape.width > 1
            short = host.ALWAYS if shape.most is None else at_most(columns, shape.most)
            when = host.all_of(aligned if wide else host.ALWAYS, short)
            if when == host.NEVER:
                continue
            shader = self._shader(shape, names if wide else set())
            yield Variant(name_of(shape) or "aligned", when, (shader,))

    def _vectors(self) -> set[str]:
        """Return the tensors that can be read or written by vectors along a row."""
        last = self.plan.columns[-1]
        plan = reread(self.plan)
        read = {x.tensor.name for x in loaded(plan) if is_contiguous(x, last)}
        return read | {tensor.name for tensor in self._stores()}

    def _stores(self) -> set[Tensor]:
        """Return the tensors that can be written by vectors along a row."""
        each = (action for pass_ in self.plan.passes for action in pass_.each)
        stores = [action for action in each if isinstance(action, Store)]
        last = self.plan.columns[-1]
        return {
            x.tensor
            for x in stores
            if not x.places or in_runs(x.tensor, x.places, last)
        }

    def _last_extents(self, names: set[str]) -> list[Extent]:
        tensors = {load.tensor for load in loaded(self.plan)} | self._stores()
        ordered = sorted(tensors, key=lambda tensor: tensor.name)
        last = [tensor.extents[-1] for tensor in ordered if tensor.name in names]
        return [self.plan.columns[-1].extent, *last]

    def _shader(self, shape: RowShape, names: set[str]) -> DispatchShader:
        """Return the shader of a shape; that of a ladder is written once for its shapes."""
        ladder = self._ladder(shape)
        if ladder is None:
            return self._written(shape, names, None)
        if ladder not in self._ladders:
            self._ladders[ladder] = self._written(shape, names, ladder)
        return self._climbed(self._ladders[ladder], ladder, shape)

    def _climbed(
        self, shader: DispatchShader, ladder: Ladder, shape: RowShape
    ) -> DispatchShader:
        """Return a ladder's shader with the constants and sizes of one of its shapes.

        Its workgroup memory is as many bytes for each lane, for any number of lanes.
        """
        names = (name for name, _ in shader.constants)
        values = ladder.constants(shape).values()
        lane_bytes = shader.workgroup_bytes // shader.workgroup_size
        plan = self._holding(shape, ladder.chunks)
        return replace(
            shader,
            constants=tuple(zip(names, values, strict=True)),
            groups=host.ceil_div(domain_size(plan.rows), shape.rows),
            trips=_trips(plan, shape),
            workgroup_size=shape.workgroup,
            workgroup_bytes=lane_bytes * shape.workgroup,
        )

    def _written(
        self, shape: RowShape, names: set[str], ladder: Ladder | None
    ) -> DispatchShader:
        """Write the shader of a shape, or of all shapes of a ladder."""
        stored = self.kept
        # Lanes that do not hold the row read values back, so that these must be stored.
        if shape.chunks:
            plan = self._holding(shape, shape.chunks)
        else:
            plan = reread(self.plan)
            plan = read_ahead(merge_sums(plan)) if shape.taken > 1 else plan
            stored |= set(self.plan.carried.values())
        shader = ShaderBuilder(self.task, dict.fromkeys(names, LANES))
        subgroups = self.wanted.subgroups
        writer = RowWriter(
            shader, plan, shape, stored, subgroups=subgroups, ladder=ladder
        )
        return shader.finish(
            writer.write(),
            groups=host.ceil_div(domain_size(plan.rows), shape.rows),
            workgroup_size=shape.workgroup,
            workgroup_name=writer.workgroup_name,
            summary=_summary(shape, ladder),
            variant=ladder.name if ladder else name_of(shape),
            terms=domain_size(plan.columns) if len(plan.columns) > 1 else host.ZERO,
            trips=_trips(plan, shape),
        )

    def _ladder(self, shape: RowShape) -> Ladder | None:
        """Return the ladder of a shape, if a lane would hold the same values as with it."""
        ladder = LADDERS.get(shape) if self.wanted.lanes is None else None
        if ladder is None:
            return None
        alike = self._holding(shape, shape.chunks) == self._holding(
            shape, ladder.chunks
        )
        return ladder if alike else None

    def _holding(self, shape: RowShape, chunks: int) -> RowPlan:
        """Return the plan of a shape whose lanes hold values of `chunks` vectors each.

        The more vectors a lane has, the fewer values of each it has room for.
        """
        number = room(shape.lanes) // (chunks * shape.width)
        if number not in self._held:
            self._held[number] = hold(self.plan, number)
        return self._held[number]


def _taken(task: Task, run: Run) -> frozenset[str]:
    """Return the names that locals must not take: those of tensors and indices."""
    tensors = (*task.kernel.tensors, *task.staged.temporaries)
    indices = (index for stage in run.stages for index in stage.indices)
    return frozenset((*(x.name for x in tensors), *(x.name for x in indices)))


def _summary(shape: RowShape, ladder: Ladder | None) -> str:
    if ladder:
        return "LANES of a workgroup per row, which is read once."
    rows = "one row" if shape.rows == 1 else f"{shape.rows} rows"
    length = "" if shape.most is None else f", of up to {shape.most} elements"
    read = "read once" if shape.chunks else "read pass by pass"
    return f"{rows} per workgroup{length}, {read}."


def _trips(plan: RowPlan, shape: RowShape) -> host.Size:
    """Return the number of turns of a lane's loops, for adapters that limit them."""
    trips = serial_trips(plan.per_row())
    for pass_ in plan.passes:
        inner = serial_trips(expressions(pass_.each))
        if shape.chunks:
            trips = host.add(trips, inner * shape.chunks)
        elif pass_.each:
            own = host.ceil_div(domain_size(plan.columns), shape.step * shape.taken)
            trips = host.add(trips, own * (inner * shape.taken + 1))
    return trips
