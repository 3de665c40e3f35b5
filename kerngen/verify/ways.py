"""Ways to run a kernel: one stage by one schedule's one variant, the rest as usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

from kerngen.plan.size import ALWAYS, holds
from kerngen.plan.tree import Schedule, Stage, Variant
from kerngen.runtime.kernel import Dims, Kernel


@final
@dataclass(frozen=True)
class Way:
    """The choice of `variant` of `schedule` for stage number `stage` of a kernel."""

    original: Kernel
    stage: int
    schedule: Schedule
    variant: Variant

    def __str__(self) -> str:
        """Stage, strategy and variant."""
        names = self.name, self.schedule.strategy, self.variant.name
        return " ".join(filter(None, names))

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.original.stages[self.stage].name

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel, forced to run so."""
        return forced(self.original, self.stage, self.schedule, self.variant)

    def takes(self, lengths: Dims) -> bool:
        """Whether the variant is for lengths such as these."""
        return holds(self.variant.when, lengths)


def ways(kernel: Kernel) -> tuple[Way, ...]:
    """Return every way to run a kernel."""
    return tuple(Way(kernel, *choice) for choice in choices(kernel))


def choices(kernel: Kernel) -> Iterator[tuple[int, Schedule, Variant]]:
    """Yield every stage by its number, with each schedule and variant of it."""
    for number, stage in enumerate(kernel.stages):
        for schedule in {s.strategy: s for s in stage.schedules}.values():
            for variant in schedule.variants:
                yield number, schedule, variant


def forced(kernel: Kernel, stage: int, schedule: Schedule, variant: Variant) -> Kernel:
    """Return a kernel with no choice left but among the variants of other stages."""
    stages = kernel.stages
    only = replace(schedule, variants=(replace(variant, when=ALWAYS),))
    after = stage + schedule.covers
    chosen = {
        **leading(stages, 0, stage),
        stage: only,
        **leading(stages, after, len(stages)),
    }
    kept = (
        replace(
            each, schedules=(replace(chosen[n], when=ALWAYS),) if n in chosen else ()
        )
        for n, each in enumerate(stages)
    )
    return replace(kernel, stages=tuple(kept))


def leading(stages: Sequence[Stage], start: int, end: int) -> dict[int, Schedule]:
    """Schedules by stage that lead from one to another; those without a guard first."""
    found = _leading(stages, start, end)
    assert found is not None, f"nothing leads from stage {start} to {end}"
    return found


def _leading(
    stages: Sequence[Stage], start: int, end: int
) -> dict[int, Schedule] | None:
    if start >= end:
        return {} if start == end else None
    for schedule in reversed(stages[start].schedules):
        rest = _leading(stages, start + schedule.covers, end)
        if rest is not None:
            return {start: schedule, **rest}
    return None
