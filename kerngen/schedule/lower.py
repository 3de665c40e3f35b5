"""Lower a staged kernel to shaders: the user's schedules first, then the compiler's."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from typing import Final, TypeAlias, final

from kerngen.ir.nodes import Function, Kernel, Module, Schedule
from kerngen.ir.stages import Stage, StagedKernel, computed_by
from kerngen.ir.strategies import OPTIONS
from kerngen.layout.struct import uniform_layout
from kerngen.plan.size import ALWAYS
from kerngen.schedule.choice import Choice, default_choices
from kerngen.schedule.faults import (
    BadTiling,
    StrategyDoesNotFit,
    TooManyStages,
    UnknownStage,
)
from kerngen.schedule.guards import EVERY_WAY, NO_WAY, Guards, Ways
from kerngen.schedule.program import (
    KernelProgram,
    ScheduledStage,
    StageProgram,
    Variant,
)
from kerngen.schedule.strategies import STRATEGIES
from kerngen.schedule.task import Options, Task
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.source.similar import closest, did_you_mean
from kerngen.source.text import Span


def lower(staged: StagedKernel, module: Module) -> KernelProgram:
    """Return the kernel's program; raise CompileError as `check_fit` does."""
    tasks = _checked_tasks(staged, module)
    return KernelProgram(staged, tuple(_Scheduler(tasks).stages()), _functions(module))


def check_fit(staged: StagedKernel, module: Module) -> None:
    """Raise CompileError where `lower` would, and make no shaders.

    It does where a schedule of the user's does not fit, or where the kernel has too
    many stages.
    """
    _checked_tasks(staged, module)


def _functions(module: Module) -> dict[str, Function]:
    return {function.name: function for function in module.functions}


def _checked_tasks(staged: StagedKernel, module: Module) -> tuple[Task, ...]:
    if len(staged.stages) > MOST_STAGES:
        span, name = staged.kernel.span, staged.kernel.name
        number = len(staged.stages)
        fault = TooManyStages(span=span, name=name, number=number, limit=MOST_STAGES)
        raise CompileError([fault])
    functions, layout = _functions(module), uniform_layout(staged.kernel)

    def task(stage: Stage) -> Task:
        stem = staged.kernel.name
        if len(staged.stages) > 1:
            stem += f".{stage.name}"
        return Task(staged, stage, functions, layout, stem)

    tasks = tuple(task(stage) for stage in staged.stages)
    _check_schedules(staged, tasks)
    return tasks


@final
@dataclass(frozen=True)
class _Candidate:
    """A way to run a task's stage, and those after it that are within its reach."""

    task: Task
    choice: Choice


MOST_STAGES: Final = 64
"""The most stages of a kernel: what can run together is looked for among all of them."""

_Key: TypeAlias = tuple[str, Hashable, int]
"""What a stage's shaders depend on: strategy, options, and how many stages they run."""


def _reason(schedule: Schedule, kernel: Kernel) -> str:
    """Say who asked for a schedule: the kernel's own file, or which other."""
    source = schedule.span.source
    at_home = source.name == kernel.span.source.name
    return "asked for" if at_home else f"asked for in {source.name}"


def _refusal(schedule: Schedule, task: Task) -> str:
    """Say why a schedule of the user's can't run a stage; empty if it can."""
    strategy = STRATEGIES[schedule.strategy]
    return strategy.refusal(task, dict(schedule.options))


@final
@dataclass(frozen=True)
class _Scheduler:
    """Schedules the stages of a kernel, one after the other.

    `ways` holds how choices for the earlier ones lead to each; to one that always runs
    with an earlier stage, none do.
    """

    tasks: tuple[Task, ...]
    ways: dict[int, Ways] = field(default_factory=lambda: {0: EVERY_WAY})
    guards: Guards = field(default_factory=Guards)

    def stages(self) -> Iterator[StageProgram]:
        """Yield every stage with its schedules, and why it has no others."""
        covering: dict[int, set[str]] = {}
        for number, task in enumerate(self.tasks):
            schedules = tuple(self._schedules(number))
            for schedule in schedules:
                for other in range(number, number + schedule.covers):
                    covering.setdefault(other, set()).add(schedule.strategy)
            others = _others(task, covering[number])
            yield StageProgram(task.stage.name, schedules, others)

    def _schedules(self, number: int) -> Iterator[ScheduledStage]:
        """Yield the schedules of a stage that some outcome of the guards chooses."""
        ways = self.ways.get(number, NO_WAY)
        made: dict[_Key, ScheduledStage] = {}
        for candidate in self._candidates(number) if ways else ():
            guard = candidate.choice.guard
            chosen = self.guards.assuming(ways, guard, holds=True)
            if not chosen:
                continue
            schedule = _schedule(candidate, made)
            after = number + schedule.covers
            others = self.ways.get(after, NO_WAY)
            self.ways[after] = self.guards.either(chosen, others)
            if schedule.runs_everywhere:
                ways = self.guards.assuming(ways, guard, holds=False)
            yield schedule if ways else replace(schedule, guard=None)
            if not ways:
                return

    def _candidates(self, number: int) -> Iterator[_Candidate]:
        """Yield the user's schedules that fit, and the compiler's own behind them."""
        for which in self._applying[number]:
            schedule = self.tasks[number].kernel.schedules[which]
            task = replace(self.tasks[number], reach=self._reach(number, which))
            if _refusal(schedule, task):
                continue
            options = dict(schedule.options)
            reason = _reason(schedule, self.tasks[number].kernel)
            choice = Choice(schedule.strategy, reason, schedule.guard, options)
            yield _Candidate(task, choice)
        task = replace(self.tasks[number], reach=self._reach(number, None))
        for choice in default_choices(task):
            within = replace(task, reach=min(task.reach, choice.reach))
            yield _Candidate(within, choice)

    @cached_property
    def _applying(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the user's schedules that apply to each stage."""
        return tuple(
            tuple(
                which
                for which, schedule in enumerate(task.kernel.schedules)
                if schedule.stage in (None, task.stage.name)
                and not _refusal(schedule, task)
            )
            for task in self.tasks
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
        own = {*self._applying[number]} if number + 1 < len(self.tasks) else set[int]()
        for later in range(number + 1, len(self.tasks)):
            others = {*self._applying[later]} - own
            if any(other < yields_before for other in others):
                return later - number
        return len(self.tasks) - number


def _schedule(
    candidate: _Candidate, made: dict[_Key, ScheduledStage]
) -> ScheduledStage:
    """Lower a candidate; what was made for another that differs by its guard is shared."""
    task, choice = candidate.task, candidate.choice
    strategy = STRATEGIES[choice.strategy]
    covers = strategy.covers(task)
    key = choice.strategy, strategy.settled(choice.options), covers
    if key not in made:
        label = _label(choice, {schedule.label for schedule in made.values()})
        lowered = strategy.lower(replace(task, label=label), choice.options)
        variants = tuple(_up_to_any_size(lowered))
        made[key] = ScheduledStage(
            strategy.name, label, choice.guard, variants, choice.reason, covers
        )
    return replace(made[key], guard=choice.guard, reason=choice.reason)


def _label(choice: Choice, taken: AbstractSet[str]) -> str:
    """Name a schedule by its options: `gemv_rows4`, `gemm_tile128x64x16_micro8x4`.

    Those that differ by how many stages they run alone are numbered.
    """
    given = (
        name + "x".join(map(str, choice.options[name]))
        for name in OPTIONS[choice.strategy]
        if name in choice.options
    )
    label = "_".join((choice.strategy, *given))
    names = chain((label,), (f"{label}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _up_to_any_size(variants: Iterable[Variant]) -> Iterator[Variant]:
    """Yield variants up to the first that takes any size: none behind it would run."""
    for variant in variants:
        yield variant
        if variant.when == ALWAYS:
            return


def _others(task: Task, used: AbstractSet[str]) -> tuple[tuple[str, str], ...]:
    """Say of each strategy that does not run the stage why that is."""
    possible = "it fits: choose it with a schedule"
    return tuple(
        (name, strategy.fits(task) or possible)
        for name, strategy in STRATEGIES.items()
        if name not in used
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
    reasons = tuple((task.stage.name, _refusal(schedule, task)) for task in meant)
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
        faults.add(BadTiling(span=_options_span(schedule), fault=fault))
    faults.raise_if_any()


def _options_span(schedule: Schedule) -> Span:
    """Return where a schedule's options stand, or its strategy where it has none."""
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
    """Say where a value is computed that has no stage of its own."""
    for stage in staged.stages:
        if wanted in {computed_by(step) for step in stage.steps}:
            return f"'{wanted}' is computed in the stage '{stage.name}': name that one."
    if any(statement.target.name == wanted for statement in staged.kernel.body):
        return f"'{wanted}' is computed where it is used, within other stages."
    whole = f"'schedule {staged.kernel.name} {{ ... }}' is for all stages that it fits"
    return did_you_mean(closest(wanted, names)) or f"Name one of them; {whole}."
