"""Captured training steps: recorded once, then replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, final, overload

from kerngen.runtime import Capture, StateError
from kerngen.train.optimizers import Settings, changeable, check_range

NUMBER: Final = "step_number"
"""The name of the scalar for the step's number, on which corrections of moments depend."""


@final
@dataclass(slots=True)
class StepPart:
    """The calls of a step up to an exchange with other processes, or to its end.

    A sharded trainer's step has three parts, the last one empty:

        network, backward │ exchange │ clip, adamw_step │ gather │
        part 0            │ its wait │ part 1           │ wait   │ part 2
    """

    capture: Capture
    names: set[str] = field(default_factory=set[str])
    """The names of its scalars, without the step's number."""
    number: int | None = None
    """The step's number as a scalar of the capture, if a call uses it."""
    updates: bool = False
    """Whether the step's update of the parameters is in this part."""
    wait: Callable[[], None] | None = None
    """The exchange or gathering after it; None for the last part."""

    def record(self, number: int, scalars: Mapping[str, float]) -> None:
        """Record the calls as step `number`, with new values of scalars."""
        own = {name: value for name, value in scalars.items() if name in self.names}
        if self.number is not None:
            own[NUMBER] = number
        self.capture.replay(1, **own)


class Take(Protocol):
    """A function of the trainer that takes a step; `record` records each part."""

    def __call__(
        self,
        parts: Sequence[StepPart],
        record: Callable[[StepPart, int], None],
        *,
        replaces: bool,
    ) -> None:
        """Take a step; it `replaces` the gradients, or adds to them."""
        ...


@final
class CapturedStep:
    """A step recorded by `trainer.capture()`; `replay` takes it again.

    A replay computes the same as the calls that were captured.
    """

    def __init__(self, capture: Capture, number: int, take: Take) -> None:
        """Begin the block; use `trainer.capture()` instead."""
        self.replaces = False
        """Whether the block overwrites the gradients, and does not add to them."""
        self._number = number
        self._parts = [StepPart(capture)]
        self._take = take
        self._settings: dict[str, str] = {}
        self._updates = False

    @property
    def number(self) -> int:
        """The step's number, to be passed to kernels."""
        part = self._parts[-1]
        if part.number is None:
            part.number = part.capture.scalar(NUMBER, self._number)
        return part.number

    @overload
    def scalar(self, name: str, value: int) -> int: ...
    @overload
    def scalar(self, name: str, value: float) -> float: ...
    def scalar(self, name: str, value: float) -> float:
        """Return a number that replays may change: `step.scalar("lr", 1e-3)`.

        It is for calls up to the next `exchange`; after that, declare it again, by the
        same name if it is the same.  The errors are those of
        `kerngen.runtime.Capture.scalar`.
        """
        part = self._parts[-1]
        number = part.capture.scalar(name, value)
        part.names.add(name)
        return number

    def replay(self, times: int = 1, **scalars: float) -> None:
        """Take the step again, `times` times; scalars given here stay changed.

        Raises:
            TornStateError: If an error left an earlier step half taken.
            UniformRangeError: If a setting of the step, or another scalar, is out of range.
            StateError, UnknownNameError, DtypeError, ContextError, DeviceLost: As
                `kerngen.runtime.Capture.replay`.
            NonFiniteError, ExchangeError: As an exchange in the block.
        """
        for name, setting in self._settings.items():
            if name in scalars:
                check_range("replay", setting, scalars[name])
        known = {name for part in self._parts for name in part.names}
        for part in self._parts:  # which checks the names
            others = scalars.keys() - (known - part.names)
            part.capture.replay(0, **{name: scalars[name] for name in others})

        def record(part: StepPart, number: int) -> None:
            part.record(number, scalars)

        for _ in range(times):
            self._take(self._parts, record, replaces=self.replaces)

    def close(self) -> None:
        """Free the memory that the step keeps; it can't be replayed any more."""
        for part in self._parts:
            part.capture.close()

    def check_exchange(self) -> None:
        """Refuse an exchange after the step's update."""
        if self._updates:
            raise StateError(
                "exchange: the captured step has its update already. Exchange before it."
            )

    def split(self, wait: Callable[[], None], capture: Capture) -> None:
        """End a part by an exchange with other processes; later calls are another part."""
        self._parts[-1].wait = wait
        self._parts.append(StepPart(capture))

    def note_update(self, where: str, groups: Iterable[Settings]) -> int:
        """Record the update of the step, and return the step's number.

        Replays check the ranges of the scalars that are settings.
        """
        if self._updates:
            raise StateError(
                f"{where}: a captured step has one update. Take it by one call, with "
                "settings by name, or capture each update apart."
            )
        self._updates = self._parts[-1].updates = True
        for settings in groups:
            self._settings |= changeable(settings)
        return self.number

    def finish(self) -> None:
        """Refuse a block without exactly one update."""
        if not self._updates:
            raise StateError(
                "capture: the block takes no step, by adamw_step() for one. To capture "
                "other calls, use ctx.capture()."
            )
