"""Candidates for a stage: the user's schedules that fit, then the compiler's defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

from kerngen.ir.analysis.requirements import Known, known_of
from kerngen.ir.nodes import Kernel, Schedule
from kerngen.ir.sizes import Condition
from kerngen.plan.size import ALWAYS, Guard, all_of
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.defaults import default_choices
from kerngen.schedule.strategies import STRATEGIES
from kerngen.schedule.task import Task


@final
@dataclass(frozen=True)
class Candidate:
    """A strategy with its options for the task's stage, the first of those that it runs.

    `guard` is the user's expression, or that of the choice; None if it always holds.  `test` is
    the same as a guard of the plan, so that the user's and the compiler's can be compared.
    """

    task: Task
    choice: ScheduleChoice
    guard: Condition | None = None
    test: Guard = ALWAYS

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that the candidate runs together."""
        run = STRATEGIES[self.choice.strategy].runs(self.task)
        return tuple(stage.name for stage in run)


def refusal(schedule: Schedule, task: Task) -> str:
    """Return why a user's schedule can't run a stage, or "" if it can."""
    strategy = STRATEGIES[schedule.strategy]
    return strategy.refusal(task, dict(schedule.options))


@final
@dataclass(frozen=True)
class Candidates:
    """The candidates of each stage of a kernel, found when they are asked for."""

    tasks: tuple[Task, ...]
    _found: dict[int, tuple[Candidate, ...]] = field(
        default_factory=dict[int, "tuple[Candidate, ...]"]
    )

    def of(self, number: int) -> tuple[Candidate, ...]:
        """Return the candidates of stage `number`, best first.

        The user's schedules that fit the stage come first, then the compiler's defaults; those
        whose guard holds in no call are left out.
        """
        if number not in self._found:
            self._found[number] = tuple(self._possible(number))
        return self._found[number]

    def _possible(self, number: int) -> Iterator[Candidate]:
        """Yield the candidates that some call may run, by what the kernel requires of calls.

        A guard that holds in every call is dropped.
        """
        known = self._known
        for candidate in self._find(number):
            if candidate.guard is None:
                yield candidate
                continue
            test = known.guard(candidate.guard)
            holds = known.facts.decide(test)
            if holds:
                yield replace(candidate, guard=None)
            elif holds is None:
                yield replace(candidate, test=test)

    @cached_property
    def _known(self) -> Known:
        """The facts about every call of the kernel."""
        return known_of(self.tasks[0].kernel)

    def _find(self, number: int) -> Iterator[Candidate]:
        # The user's schedules in the order of the text.  Whether they fit is tested again, as
        # the run may end earlier here.
        for which in self._applying[number]:
            schedule = self.tasks[number].kernel.schedules[which]
            task = replace(self.tasks[number], end=self._end(number, which))
            if refusal(schedule, task):
                continue
            options = dict(schedule.options)
            reason = _reason(schedule, self.tasks[number].kernel)
            choice = ScheduleChoice(schedule.strategy, reason, options=options)
            yield Candidate(task, choice, self._guard(task, choice, schedule.guard))
        end = self._end(number, None)
        for choice in default_choices(replace(self.tasks[number], end=end)):
            within = min(end, number + choice.together)
            task = replace(self.tasks[number], end=within)
            yield Candidate(task, choice, self._guard(task, choice, choice.guard))

    def _guard(
        self, task: Task, choice: ScheduleChoice, guard: Condition | None
    ) -> Condition | None:
        """Return a guard, together with what the strategy requires of the sizes."""
        required = STRATEGIES[choice.strategy].requires(task)
        if required == ALWAYS:
            return guard
        return required if guard is None else all_of(self._known.guard(guard), required)

    @cached_property
    def _applying(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the user's schedules that apply to each stage."""
        return tuple(
            tuple(
                which
                for which, schedule in enumerate(task.kernel.schedules)
                if schedule.stage in (None, task.stage.name)
                and not refusal(schedule, task)
            )
            for task in self.tasks
        )

    def _end(self, number: int, which: int | None) -> int:
        """Return the stage before which a run of stages that begins at `number` must end.

        User's schedule `which` asks for the run; None: a default.  The run ends before a
        stage for which the user has another schedule, one that does not apply to the first
        stage.  If `which` is for the whole kernel, only schedules before it in the text count.
        """
        schedules = self.tasks[number].kernel.schedules
        whole = which is not None and schedules[which].stage is None
        yields_before = which if which is not None and whole else len(schedules)
        own = {*self._applying[number]} if number + 1 < len(self.tasks) else set[int]()
        for later in range(number + 1, len(self.tasks)):
            others = {*self._applying[later]} - own
            if any(other < yields_before for other in others):
                return later
        return len(self.tasks)


def _reason(schedule: Schedule, kernel: Kernel) -> str:
    """Return who asked for a schedule: the kernel's own file, or which other."""
    source = schedule.span.source
    at_home = source.name == kernel.span.source.name
    return "asked for" if at_home else f"asked for in {source.name}"
