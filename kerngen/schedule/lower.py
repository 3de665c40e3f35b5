"""Lower a staged kernel to shaders: the user's schedules first, then the compiler's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.nodes import Module, Schedule
from kerngen.ir.stages import Stage, StagedKernel
from kerngen.layout.struct import uniform_layout
from kerngen.schedule.choice import Choice, default_choices
from kerngen.schedule.faults import BadTiling, OptionNotSupported, StrategyDoesNotFit
from kerngen.schedule.program import KernelProgram, ScheduledStage, StageProgram
from kerngen.schedule.strategies import STRATEGIES
from kerngen.schedule.task import Options, Task
from kerngen.schedule.tiling import tiling_of
from kerngen.source.diagnostic import Faults

_PLANNED_OPTIONS: Final = ("buffers", "split")


def lower(
    staged: StagedKernel, module: Module, *, stem: str, origin: str
) -> KernelProgram:
    """Return the kernel's program.

    `stem` begins the names of its shader files; `origin` is what their headers name as
    their source.  Raises CompileError where a schedule of the user's does not fit.
    """
    tasks = _tasks(staged, module, stem, origin)
    _check_schedules(staged, tasks)
    stages = tuple(
        StageProgram(task.stage.name, tuple(_schedules(task))) for task in tasks
    )
    return KernelProgram(staged, stages)


def _tasks(
    staged: StagedKernel, module: Module, stem: str, origin: str
) -> tuple[Task, ...]:
    functions = {function.name: function for function in module.functions}
    layout = uniform_layout(staged.kernel)

    def task(stage: Stage) -> Task:
        parts = [stem, staged.kernel.name]
        if len(staged.stages) > 1:
            parts.append(stage.name)
        return Task(staged, stage, functions, layout, ".".join(parts), origin)

    return tuple(task(stage) for stage in staged.stages)


def _schedules(task: Task) -> Iterator[ScheduledStage]:
    """Yield a stage's schedules, each under a name of its own."""
    used: dict[str, int] = {}
    for choice in _choices(task):
        number = used.get(choice.strategy, 0) + 1
        used[choice.strategy] = number
        label = choice.strategy if number == 1 else f"{choice.strategy}_{number}"
        variants = STRATEGIES[choice.strategy].lower(
            replace(task, label=label), choice.options
        )
        yield ScheduledStage(
            choice.strategy, label, choice.guard, variants, choice.reason
        )


def _choices(task: Task) -> Iterator[Choice]:
    """Yield the user's schedules that fit, and the compiler's own behind them.

    The compiler's stand last even behind one without a guard, which an adapter's limits
    may rule out; those that the user's text repeats are left out.
    """
    given: list[Choice] = []
    for schedule in task.kernel.schedules:
        if STRATEGIES[schedule.strategy].fits(task):
            continue
        options = dict(schedule.options)
        given.append(Choice(schedule.strategy, "asked for", schedule.guard, options))
    yield from given
    for choice in default_choices(task):
        same = (
            g.strategy == choice.strategy
            and _effective(g) == _effective(choice)
            and g.guard in (None, choice.guard)
            for g in given
        )
        if not any(same):
            yield choice


def _effective(choice: Choice) -> object:
    """Return what the options amount to, so that a default spelt out equals it."""
    return tiling_of(choice.options) if choice.strategy == "gemm" else choice.options


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
    fits = STRATEGIES[schedule.strategy].fits
    reasons = tuple((task.stage.name, fits(task)) for task in tasks)
    if all(reason for _, reason in reasons):
        faults.add(
            StrategyDoesNotFit(
                span=schedule.span,
                strategy=schedule.strategy,
                kernel=staged.kernel.name,
                reasons=reasons,
            )
        )
    options: Options = dict(schedule.options)
    for option in _PLANNED_OPTIONS:
        if options.get(option, (1,)) != (1,):
            faults.add(OptionNotSupported(span=schedule.span, option=option))
    for fault in tiling_of(options).faults():
        faults.add(BadTiling(span=schedule.span, fault=fault))
    faults.raise_if_any()
