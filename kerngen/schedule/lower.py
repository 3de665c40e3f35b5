"""Lower a staged kernel to shaders: the user's schedules first, then the compiler's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final, final

from kerngen.ir.nodes import Function, Kernel, Module, Schedule
from kerngen.ir.stages import Stage, StagedKernel
from kerngen.layout.struct import uniform_layout
from kerngen.schedule.choice import ALONE, Choice, default_choices
from kerngen.schedule.faults import (
    BadTiling,
    OptionNotSupported,
    StrategyDoesNotFit,
    UnknownStage,
)
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
    functions = {function.name: function for function in module.functions}
    tasks = _tasks(staged, functions, stem, origin)
    _check_schedules(staged, tasks)
    scheduler = _Scheduler(tasks)
    covering: dict[int, dict[str, str]] = {}
    stages: list[StageProgram] = []
    for number, task in enumerate(tasks):
        schedules = tuple(scheduler.schedules(number))
        for schedule in schedules:
            for other in range(number + 1, number + schedule.covers):
                said = f"it runs this stage together with '{task.stage.name}'"
                covering.setdefault(other, {})[schedule.strategy] = said
        others = _others(task, schedules, covering.get(number, {}))
        stages.append(StageProgram(task.stage.name, schedules, others))
    return KernelProgram(staged, tuple(stages), functions)


def _others(
    task: Task, schedules: Sequence[ScheduledStage], covering: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Say of each strategy that has no schedule here why that is."""
    used = {schedule.strategy for schedule in schedules}
    possible = "it fits: ask for it by a schedule"
    return tuple(
        (name, covering.get(name) or strategy.fits(task) or possible)
        for name, strategy in STRATEGIES.items()
        if name not in used
    )


def _tasks(
    staged: StagedKernel, functions: dict[str, Function], stem: str, origin: str
) -> tuple[Task, ...]:
    layout = uniform_layout(staged.kernel)

    def task(stage: Stage) -> Task:
        parts = [stem, staged.kernel.name]
        if len(staged.stages) > 1:
            parts.append(stage.name)
        return Task(staged, stage, functions, layout, ".".join(parts), origin)

    return tuple(task(stage) for stage in staged.stages)


@final
@dataclass(frozen=True)
class _Candidate:
    """A way to run a task's stage, of the user's schedule `given` if it has a number."""

    task: Task
    choice: Choice
    given: int | None

    @property
    def covers(self) -> int:
        """How many stages it runs."""
        return STRATEGIES[self.choice.strategy].covers(self.task)


def _reason(schedule: Schedule, kernel: Kernel) -> str:
    """Say who asked for a schedule: the kernel's own file, or which other."""
    source = schedule.span.source
    at_home = source.name == kernel.span.source.name
    return "asked for" if at_home else f"asked for in {source.name}"


@final
@dataclass(frozen=True)
class _Scheduler:
    """Schedules the stages of a kernel, one after the other.

    `covered` holds, by the number of a stage, the first choices for earlier stages that
    run it, too.
    """

    tasks: tuple[Task, ...]
    covered: dict[int, list[_Candidate]] = field(default_factory=dict)

    def schedules(self, number: int) -> Iterator[ScheduledStage]:
        """Yield the schedules of a stage, each under a name of its own."""
        used: dict[str, int] = {}
        for place, candidate in enumerate(self._candidates(number)):
            task, choice, covers = candidate.task, candidate.choice, candidate.covers
            if place == 0:
                for other in range(number + 1, number + covers):
                    self.covered.setdefault(other, []).append(candidate)
            count = used.get(choice.strategy, 0) + 1
            used[choice.strategy] = count
            label = choice.strategy if count == 1 else f"{choice.strategy}_{count}"
            variants = STRATEGIES[choice.strategy].lower(
                replace(task, label=label), choice.options
            )
            yield ScheduledStage(
                choice.strategy, label, choice.guard, variants, choice.reason, covers
            )

    def _candidates(self, number: int) -> Iterator[_Candidate]:
        """Yield the user's schedules that fit, and the compiler's own behind them.

        The compiler's stand last even behind one without a guard, which an adapter's
        limits may rule out; those that the user's text repeats are left out.
        """
        covered = self.covered.get(number, [])
        done = {candidate.given for candidate in covered}
        given: list[Choice] = []
        for which in self._applying(number):
            schedule = self.tasks[number].kernel.schedules[which]
            task = replace(self.tasks[number], reach=self._reach(number, which))
            if which in done or STRATEGIES[schedule.strategy].fits(task):
                continue
            options = dict(schedule.options)
            reason = _reason(schedule, self.tasks[number].kernel)
            choice = Choice(schedule.strategy, reason, schedule.guard, options)
            given.append(choice)
            yield _Candidate(task, choice, which)
        task = replace(self.tasks[number], reach=self._reach(number, None))
        choices = default_choices(task, together=None not in done)
        if any(candidate.choice.guard is None for candidate in covered):
            choices = iter((ALONE,))
        for choice in choices:
            if not any(_repeats(before, choice) for before in given):
                within = replace(task, reach=min(task.reach, choice.reach))
                yield _Candidate(within, choice, None)

    def _applying(self, number: int) -> tuple[int, ...]:
        """Return the numbers of the user's schedules that apply to a stage."""
        task = self.tasks[number]
        return tuple(
            which
            for which, schedule in enumerate(task.kernel.schedules)
            if schedule.stage in (None, task.stage.name)
            and not STRATEGIES[schedule.strategy].fits(task)
        )

    def _reach(self, number: int, which: int | None) -> int:
        """Return how many stages a schedule may run together, from one stage on.

        It leaves a stage alone for which the user has a schedule of its own, that is,
        one that had no chance at the first stage; a schedule of the whole kernel only
        yields to such that stand before it in the text.
        """
        schedules = self.tasks[number].kernel.schedules
        whole = which is not None and schedules[which].stage is None
        yields_before = which if which is not None and whole else len(schedules)
        own = {*self._applying(number)}
        for later in range(number + 1, len(self.tasks)):
            others = {*self._applying(later)} - own
            if any(other < yields_before for other in others):
                return later - number
        return len(self.tasks) - number


def _repeats(given: Choice, choice: Choice) -> bool:
    """Whether a choice of the user's says what one of ours does."""
    same = given.strategy == choice.strategy
    return (
        same
        and _effective(given) == _effective(choice)
        and given.guard in (None, choice.guard)
    )


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
    meant = [t for t in tasks if schedule.stage in (None, t.stage.name)]
    if not meant:
        _report_stage(faults, schedule, staged)
    fits = STRATEGIES[schedule.strategy].fits
    reasons = tuple((task.stage.name, fits(task)) for task in meant)
    if meant and all(reason for _, reason in reasons):
        faults.add(
            StrategyDoesNotFit(
                span=schedule.span,
                strategy=schedule.strategy,
                kernel=staged.kernel.name,
                stage=schedule.stage or "",
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


def _report_stage(faults: Faults, schedule: Schedule, staged: StagedKernel) -> None:
    names = [stage.name for stage in staged.stages]
    wanted = schedule.stage or ""
    faults.add(
        UnknownStage(
            span=schedule.stage_span or schedule.span,
            kernel=staged.kernel.name,
            stage=wanted,
            known=", ".join(f"'{name}'" for name in names),
            suggestion=next(iter(get_close_matches(wanted, names, 1)), ""),
        )
    )
