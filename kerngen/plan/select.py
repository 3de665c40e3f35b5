"""Select the dispatches of a call: every choice in a plan's tree is decided.

The first case that applies is taken, here for m = 128:

    stage top, total, y
      reduce | when m < 64 and n > 65536 | ...    does not apply
      rows | ... run softmax.rows(x, y*)          applies: one dispatch

Then the strategy of the stage `top` is `rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never, final

from kerngen.plan.adapter import AdapterInfo
from kerngen.plan.size import SizeEvaluator, Values
from kerngen.plan.tree import Case, Choice, Dispatch, Repeat, Scratch, Sequence

MOST_DISPATCHES: Final = 4096
"""The most dispatches of a call: each one is recorded, which takes some microseconds."""


class NoCaseError(Exception):
    """Raised if no case of a choice applies to a call on this adapter."""

    def __init__(self, choice: Choice) -> None:
        """Name the stages of the choice."""
        super().__init__(f"no case for {', '.join(choice.stages)}")
        self.stages = choice.stages


class TooManyStepsError(Exception):
    """Raised for a call of more dispatches than are allowed."""

    def __init__(self, stage: str, count: int) -> None:
        """Name the stage, and how many it takes."""
        super().__init__(f"{count} dispatches of {stage}")
        self.stage = stage
        self.count = count


@final
@dataclass(frozen=True, slots=True)
class Selected:
    """The strategy chosen for `stage`; its shaders may compute later stages as well."""

    stage: str
    strategy: str


@final
@dataclass(frozen=True, slots=True)
class Planned:
    """A dispatch of a call, with the stage and strategy that it is of, `origin`.

    `scratch` has the number of each of its scratch buffers in the call, by name.
    """

    dispatch: Dispatch
    origin: Selected
    scratch: Mapping[str, int]


@final
@dataclass(frozen=True, slots=True)
class SelectedDispatches:
    """The dispatches of a call in order, their scratch buffers, and the strategies."""

    strategies: list[Selected] = field(default_factory=list[Selected])
    dispatches: list[Planned] = field(default_factory=list[Planned])
    scratch: list[Scratch] = field(default_factory=list[Scratch])


def select(body: Sequence, values: Values, adapter: AdapterInfo) -> SelectedDispatches:
    """Return the dispatches of a call, given its lengths, scalars and adapter.

    Raises:
        NoCaseError: If a choice has no case that applies.
        TooManyStepsError: If a stage takes more than `MOST_DISPATCHES`.
    """
    evaluator = SizeEvaluator({**values, **adapter.facts})
    selector = _Selector(evaluator, adapter)
    selector.steps(body, Selected("", ""), {})
    return selector.selection


@final
@dataclass(frozen=True, slots=True)
class _Selector:
    """Walks a tree along the cases that apply."""

    evaluator: SizeEvaluator
    adapter: AdapterInfo
    selection: SelectedDispatches = field(default_factory=SelectedDispatches)

    def steps(
        self, body: Sequence, origin: Selected, scratch: Mapping[str, int]
    ) -> None:
        """Note the dispatches of a sequence; `origin` and `scratch` are those around it."""
        for step in body:
            match step:
                case Dispatch():
                    self.selection.dispatches.append(Planned(step, origin, scratch))
                case Choice():
                    self._choice(step, origin, scratch)
                case Repeat(count, repeated):
                    times = max(self.evaluator.size(count), 0)
                    total = len(self.selection.dispatches) + times * len(repeated)
                    if total > MOST_DISPATCHES:
                        raise TooManyStepsError(origin.stage, total)
                    for _ in range(times):
                        self.steps(repeated, origin, scratch)
                case _:
                    assert_never(step)

    def _choice(
        self, choice: Choice, origin: Selected, scratch: Mapping[str, int]
    ) -> None:
        """Note the dispatches of the case that applies."""
        case = self._case(choice)
        # A strategy for stages; other choices are between shaders of the strategy above.
        if choice.stages and case.name:
            origin = Selected(choice.stages[0], case.name)
            self.selection.strategies.append(origin)
        if case.scratch:
            # Buffers are numbered over the whole call: two cases may use one name.
            numbered = enumerate(case.scratch, len(self.selection.scratch))
            scratch = {**scratch, **{item.name: number for number, item in numbered}}
            self.selection.scratch.extend(case.scratch)
        self.steps(case.body, origin, scratch)

    def _case(self, choice: Choice) -> Case:
        """Return the first case that applies."""
        for case in choice.cases:
            if self.adapter.offers(case.needs) and self.evaluator.holds(case.when):
                return case
        raise NoCaseError(choice)
