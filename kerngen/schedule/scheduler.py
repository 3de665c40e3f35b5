"""Choose how the stages of a kernel run: a tree of choices, whose cases are lowered.

A strategy may run several stages together.  So a choice for some stages is between
schedules that run all of them, and schedules that run the first ones and leave choices for
the rest.  The choice ends at its *join*: the first stage from which on all its cases have the
same choices again, which are the next choice of the sequence.  For softmax and a stage after
it:

    top, total, y      rows (top, total and y)
                       reduce (top), then choices for total and y
    z                  map                                            z is the join

Where the last cases of a choice meet before the others do, they are a sequence of their own,
`otherwise`, which runs if no case before them does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, count
from typing import TypeAlias, final

from kerngen.ir.sizes import Condition
from kerngen.ir.strategies import OPTIONS
from kerngen.plan.facts import Facts
from kerngen.plan.size import ALWAYS, NEVER, Guard, all_follow, all_of, parts_of
from kerngen.plan.tree import NOTHING, Needs
from kerngen.schedule.candidates import Candidate, Candidates
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.program import (
    EVERYWHERE,
    ScheduledCase,
    ScheduledStage,
    StageChoice,
    Variant,
)
from kerngen.schedule.strategies import STRATEGIES
from kerngen.schedule.task import Task


@final
@dataclass(frozen=True, slots=True)
class _Known:
    """The knowledge about a call at a choice, from the cases that led there.

    - `holding`: the guards of the cases that ran
    - `adapter`: what those need of the adapter, which it therefore has
    - `passed`: the parts of the guards of the cases that were passed over, each with the
      needs of its case: the guard does not hold, or the adapter lacks what the case needs

    With it, cases that can't run are left out of the tree.
    """

    holding: frozenset[Guard] = frozenset()
    adapter: Needs = EVERYWHERE
    passed: tuple[tuple[frozenset[Guard], Needs], ...] = ()

    def lacking(self, guard: Guard) -> tuple[Needs, ...]:
        """Return the needs of which the adapter lacks something, where a guard holds.

        A case that has one of them can't run: where `m == 1` was passed over, a case that asks
        for `m == 1 and n < 16`, and needs no less, can't, either.
        """
        given = parts_of(guard)
        return tuple(needs for asked, needs in self.passed if all_follow(asked, given))

    def running(self, guard: Guard, needs: Needs) -> _Known:
        """Return the knowledge where a case with this guard and these needs runs."""
        holding = self.holding | {guard}
        return replace(self, holding=holding, adapter=self.adapter.joined(needs))

    def passing(self, guard: Guard, needs: Needs) -> _Known:
        """Return the knowledge where a case with this guard and these needs was passed over."""
        asked = NOTHING if needs.within(self.adapter) else needs
        return replace(self, passed=(*self.passed, (parts_of(guard), asked)))


_Key: TypeAlias = tuple[str, Hashable, tuple[str, ...]]
"""What a stage's shaders depend on: strategy, options, and the stages that they run."""


@final
@dataclass(frozen=True, slots=True)
class _Option:
    """A case of a choice without its rest.

    - `after`: the number of the first stage that it does not run
    - `before`, `known`: the knowledge where it is tested, and where it runs
    """

    schedule: ScheduledStage
    guard: Condition | None
    rank: int
    after: int
    before: _Known
    known: _Known


@final
@dataclass(frozen=True, slots=True)
class Scheduler:
    """Chooses schedules for a kernel's stages, and lowers each schedule of a stage once."""

    tasks: tuple[Task, ...]
    candidates: Candidates
    _shaders: dict[int, dict[_Key, ScheduledStage]] = field(
        default_factory=dict[int, dict[_Key, ScheduledStage]]
    )
    _met: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def choices(self) -> tuple[StageChoice, ...]:
        """Return the choices that, one after another, compute all stages."""
        return tuple(self._sequence(0, len(self.tasks), _Known()))

    def _sequence(self, first: int, end: int, known: _Known) -> Iterator[StageChoice]:
        """Yield choices for the stages from `first` to `end`, one for each join."""
        while first < end:
            options = tuple(self._options(first, known))
            join = self._join(options)
            options, last = self._parted(options, join)
            # Each case has the choices for the stages that it leaves, up to the join.
            cases = tuple(
                ScheduledCase(
                    option.schedule,
                    option.guard,
                    option.rank,
                    tuple(self._sequence(option.after, join, option.known)),
                )
                for option in options
            )
            names = tuple(task.stage.name for task in self.tasks[first:join])
            otherwise = self._sequence(first, join, last[0].before) if last else ()
            yield StageChoice(names, cases, tuple(otherwise))
            first = join

    def _join(self, options: Iterable[_Option]) -> int:
        """Return the first stage at which all ways that begin with options meet."""
        return min(_common(self._meets(option.after) for option in options))

    def _parted(
        self, options: tuple[_Option, ...], join: int
    ) -> tuple[tuple[_Option, ...], tuple[_Option, ...]]:
        """Set the last options apart, if at least two of them meet before all options do."""
        meets = [self._meets(option.after) for option in options]
        # For each option, the stages at which it and those after it meet.
        common = list[frozenset[int]](accumulate(reversed(meets), lambda x, y: x & y))
        common.reverse()
        for at in range(1, len(options) - 1):
            if min(common[at]) < join:
                return options[:at], options[at:]
        return options, ()

    def _meets(self, number: int) -> frozenset[int]:
        """Return the stages at which a schedule begins however the stages from one on run.

        The end is one of them.  Guards count as if any outcome were possible.
        """
        if number == len(self.tasks):
            return frozenset((number,))
        if number not in self._met:
            ends = {number + len(each.stages) for each in self.candidates.of(number)}
            self._met[number] = _common(map(self._meets, ends)) | {number}
        return self._met[number]

    def _options(self, number: int, known: _Known) -> Iterator[_Option]:
        """Yield the cases that may run a stage; the last one always applies."""
        for rank, candidate in enumerate(self.candidates.of(number)):
            guard, test = candidate.guard, candidate.test
            # Tested before the candidate is lowered, and again with the needs of its shaders.
            lacking = known.lacking(test)
            if any(each.within(NOTHING) for each in lacking):
                continue
            schedule = self._lowered(number, candidate)
            needs, after = schedule.needs, number + len(schedule.stages)
            if any(each.within(needs) for each in lacking):
                continue
            if test in known.holding:
                guard, test = None, ALWAYS
            # The next candidates are tested where this one was passed over.
            running = known.running(test, needs)
            yield _Option(schedule, guard, rank, after, known, running)
            if guard is None and needs.within(known.adapter):
                return
            known = known.passing(test, needs)

    def _lowered(self, number: int, candidate: Candidate) -> ScheduledStage:
        """Lower a candidate of a stage; those that differ by their guard share shaders."""
        choice = candidate.choice
        made = self._shaders.setdefault(number, {})
        strategy = STRATEGIES[choice.strategy]
        # Lowering is expensive: schedules that differ by guard and reason share the result.
        key = choice.strategy, strategy.shader_key(choice.options), candidate.stages
        if key not in made:
            label = _label(choice, {schedule.label for schedule in made.values()})
            task = replace(candidate.task, label=label)
            lowered = strategy.lower(task, choice.options)
            facts = task.facts if task.kernel.requires else None
            variants = tuple(_up_to_any_size(lowered, facts))
            made[key] = ScheduledStage(
                strategy.name,
                label,
                candidate.guard,
                variants,
                choice.reason,
                candidate.stages,
            )
        # No call runs a variant whose condition excludes the guard.
        possible = (
            variant
            for variant in made[key].variants
            if all_of(candidate.test, variant.when) != NEVER
        )
        return replace(
            made[key],
            guard=candidate.guard,
            variants=tuple(possible),
            reason=choice.reason,
        )


def _common(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    """Return the intersection of one or more sets."""
    first, *others = sets
    return first.intersection(*others)


def _label(choice: ScheduleChoice, taken: AbstractSet[str]) -> str:
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


def _up_to_any_size(
    variants: Iterable[Variant], facts: Facts | None
) -> Iterator[Variant]:
    """Yield variants up to the first that takes any size: none behind it would run.

    By the `facts` that a kernel requires of each call, conditions become simpler, and variants
    that no call could run are left out.
    """
    for variant in variants:
        when = facts.simplified(variant.when) if facts else variant.when
        if when != NEVER:
            yield replace(variant, when=when)
        if when == ALWAYS:
            return
