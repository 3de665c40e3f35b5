"""Lower a staged kernel to shaders, by the user's schedules and the compiler's defaults.

Where a schedule of the user fits a stage and its guard holds, it is preferred to the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Final

from kerngen.ir.analysis.conditions import without_conditions
from kerngen.ir.module import Module
from kerngen.ir.nodes import Expr, Function, Index, Reduce, Schedule
from kerngen.ir.staging.stages import Stage, StagedKernel, computed_by
from kerngen.ir.walk import children
from kerngen.layout.struct import uniform_layout
from kerngen.schedule.candidates import Candidates, refusal
from kerngen.schedule.faults import (
    BadTiling,
    StrategyDoesNotFit,
    TooManyPoints,
    TooManyStages,
    UnknownStage,
)
from kerngen.schedule.merged_axes import with_merged_axes
from kerngen.schedule.program import KernelProgram, Reasons, StageChoice, cases_in
from kerngen.schedule.scheduler import Scheduler
from kerngen.schedule.strategies import STRATEGIES
from kerngen.schedule.task import Options, Task
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.source.similar import closest, did_you_mean
from kerngen.source.text import Span


def lower(staged: StagedKernel, module: Module) -> KernelProgram:
    """Return the program of a kernel: the shaders of its stages, and the choices between them.

    It raises CompileError where `check_fit` does.
    """
    staged = _without_conditions(staged)
    checked = _checked_tasks(staged, module)
    tasks = _with_merged_axes(checked)
    choices = Scheduler(tasks, Candidates(tasks)).choices()
    # A schedule of the user must fit the stage as it is written.
    others = partial(_others, checked, choices)
    return KernelProgram(staged, choices, others, _functions(module))


def _with_merged_axes(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """Return the tasks with merged axes; as they are for attention, whose stages share axes."""
    stages = tuple(with_merged_axes(task.stage, task.other_stages) for task in tasks)
    if stages == tasks[0].staged.stages:
        return tasks
    if any(not STRATEGIES["flash"].fits(task) for task in tasks):
        return tasks
    staged = replace(tasks[0].staged, stages=stages)
    return tuple(
        replace(task, staged=staged, stage=stage)
        for task, stage in zip(tasks, stages, strict=True)
    )


def check_fit(staged: StagedKernel, module: Module) -> None:
    """Raise CompileError for the faults for which `lower` would, without making shaders.

    These are user's schedules that fit no stage, too many stages, and stages with too many
    terms.
    """
    _checked_tasks(_without_conditions(staged), module)


def _without_conditions(staged: StagedKernel) -> StagedKernel:
    """Return stages whose reductions have no conditions, as all strategies expect them.

    `sum[j when c] v` becomes `sum[j] if c { v } else { 0.0 }`; strategies that use conditions
    find them in that form again (`conditional`).
    """
    stages = tuple(
        replace(
            stage,
            steps=tuple(
                replace(step, value=without_conditions(step.value))
                for step in stage.steps
            ),
        )
        for stage in staged.stages
    )
    return replace(staged, stages=stages)


def _functions(module: Module) -> dict[str, Function]:
    return {function.name: function for function in module.functions}


def _checked_tasks(staged: StagedKernel, module: Module) -> tuple[Task, ...]:
    _check_limits(staged)
    functions, layout = _functions(module), uniform_layout(staged.kernel)

    def task(stage: Stage) -> Task:
        stem = staged.kernel.name
        if len(staged.stages) > 1:
            stem += f".{stage.name}"
        return Task(staged, stage, functions, layout, stem)

    tasks = tuple(task(stage) for stage in staged.stages)
    _check_schedules(staged, tasks)
    return tasks


MOST_STAGES: Final = 64
"""The most stages of a kernel: for each of them, all later ones are tried as stages that can
run together with it."""

MOST_POINTS: Final = 2**48
"""The most terms of a stage with lengths that are literals: days of work for any adapter.

So the integers of a plan, small multiples of this number, stay within 2^53, up to which a
double is exact.
"""


def _check_limits(staged: StagedKernel) -> None:
    span, name, number = staged.kernel.span, staged.kernel.name, len(staged.stages)
    if number > MOST_STAGES:
        fault = TooManyStages(span=span, name=name, number=number, limit=MOST_STAGES)
        raise CompileError([fault])
    faults = Faults()
    for stage in staged.stages:
        points, name = _points(stage), stage.name
        if points > MOST_POINTS:
            many = TooManyPoints(span=span, stage=name, number=points, limit="2^48")
            faults.add(many)
    faults.raise_if_any()


def _points(stage: Stage) -> int:
    """Return how many terms a stage computes if all dims are 1: the product of literals."""
    terms: dict[int, int] = {}

    def terms_of(expr: Expr) -> int:
        if id(expr) not in terms:
            inner = max(map(terms_of, children(expr)), default=1)
            own = _fixed(expr.indices) if isinstance(expr, Reduce) else 1
            terms[id(expr)] = own * inner
        return terms[id(expr)]

    values = (terms_of(step.value) for step in stage.steps)
    return _fixed(stage.domain) * max(values, default=1)


def _fixed(indices: Iterable[Index]) -> int:
    """Return how many elements indices go over where all dims are 1."""
    return prod(i.extent for i in indices if isinstance(i.extent, int))


def _others(
    tasks: Sequence[Task], choices: Iterable[StageChoice], number: int
) -> Reasons:
    """Return the reason why each strategy that never runs a stage does not.

    Of strategies for recurrences and for other stages, only those of the stage's kind count.
    """
    task = tasks[number]
    schedules = (case.schedule for case in cases_in(choices))
    used = {each.strategy for each in schedules if task.stage.name in each.stages}
    possible = "it fits: choose it with a schedule"
    return tuple(
        (name, strategy.fits(task) or possible)
        for name, strategy in STRATEGIES.items()
        if name not in used and strategy.in_order in {None, bool(task.stage.loop)}
    )


# The user's schedules


def _check_schedules(staged: StagedKernel, tasks: tuple[Task, ...]) -> None:
    faults = Faults()
    for schedule in staged.kernel.schedules:
        with faults.collect():
            _check_schedule(schedule, staged, tasks)
    faults.raise_if_any()


def _check_schedule(
    schedule: Schedule, staged: StagedKernel, tasks: tuple[Task, ...]
) -> None:
    faults = Faults()
    meant = [t for t in tasks if schedule.stage in (None, t.stage.name)]
    if not meant:
        _report_stage(faults, schedule, staged)
    reasons = tuple((task.stage.name, refusal(schedule, task)) for task in meant)
    # A schedule of a whole kernel is for the stages that it fits: it is wrong if it fits none.
    if meant and all(reason for _, reason in reasons):
        fits = STRATEGIES[schedule.strategy].fits
        by_options = any(not fits(task) for task in meant)
        faults.add(
            StrategyDoesNotFit(
                span=_options_span(schedule) if by_options else schedule.span,
                by_options=by_options,
                strategy=schedule.strategy,
                kernel=staged.kernel.name,
                stage=schedule.stage or "",
                reasons=reasons,
            )
        )
    options: Options = dict(schedule.options)
    for fault in STRATEGIES[schedule.strategy].faults(options):
        span = _options_span(schedule)
        faults.add(BadTiling(span=span, strategy=schedule.strategy, fault=fault))
    faults.raise_if_any()


def _options_span(schedule: Schedule) -> Span:
    """Return the span of a schedule's options, or of its strategy where it has none."""
    span = schedule.span
    options = span.text[len(schedule.strategy) :].lstrip()
    return Span(span.source, span.end - len(options), span.end) if options else span


def _report_stage(faults: Faults, schedule: Schedule, staged: StagedKernel) -> None:
    names = [stage.name for stage in staged.stages]
    wanted = schedule.stage or ""
    faults.add(
        UnknownStage(
            span=schedule.stage_span or schedule.span,
            kernel=staged.kernel.name,
            stage=wanted,
            known=", ".join(f"'{name}'" for name in names),
            remedy=_stage_remedy(wanted, names, staged),
        )
    )


def _stage_remedy(wanted: str, names: Sequence[str], staged: StagedKernel) -> str:
    """Return the hint for a name that is no stage: where that value is computed instead."""
    for stage in staged.stages:
        if wanted in {computed_by(step) for step in stage.steps}:
            return f"'{wanted}' is computed in the stage '{stage.name}': name that one."
    if any(statement.target.name == wanted for statement in staged.kernel.body):
        return f"'{wanted}' is computed where it is used, within other stages."
    whole = f"'schedule {staged.kernel.name} {{ ... }}' is for all stages that it fits"
    return did_you_mean(closest(wanted, names)) or f"Name one of them; {whole}."
