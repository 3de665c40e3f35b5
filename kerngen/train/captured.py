"""A step that is captured: taken again and again, without the calls that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, final, overload

from kerngen.runtime import Capture, StateError
from kerngen.train.optimizers import Settings, changeable, check_range

NUMBER: Final = "step_number"
"""The scalar that the trainer declares itself: corrections of moments depend on it."""


class Take(Protocol):
    """Takes a step of the trainer; `record` records the step of a number."""

    def __call__(self, record: Callable[[int], None], *, replaces: bool) -> None:
        """Take it, by gradients that are replaced in it, or by those there are."""
        ...


@final
class CapturedStep:
    """A step of a trainer, recorded by `trainer.capture()`; `replay` takes it.

    It differs from the step's own calls in nothing but the time that they take.
    """

    def __init__(self, capture: Capture, number: int, take: Take) -> None:
        """Begin the block; use `trainer.capture()` instead."""
        self.number = capture.scalar(NUMBER, number)
        """The step's number, as kernels are to be given it."""
        self.replaces = False
        """Whether the block computes the gradients from nothing."""
        self._capture = capture
        self._take = take
        self._settings: dict[str, str] = {}
        self._updates = False

    @overload
    def scalar(self, name: str, value: int) -> int: ...
    @overload
    def scalar(self, name: str, value: float) -> float: ...
    def scalar(self, name: str, value: float) -> float:
        """Return a number that a replay may change: `adamw_step(lr=step.scalar("lr", 1e-3))`.

        Raises what `kerngen.runtime.Capture.scalar` raises.
        """
        return self._capture.scalar(name, value)

    def replay(self, times: int = 1, **scalars: float) -> None:
        """Take the step again, `times` times; scalars given here stay changed.

        Raises:
            TornStateError: If an error left an earlier step half taken.
            UniformRangeError: If a setting of the step is out of its range, or a scalar of its.
            StateError, UnknownNameError, DtypeError, ContextError, DeviceLost: As
                `kerngen.runtime.Capture.replay`.
        """
        for name, setting in self._settings.items():
            if name in scalars:
                check_range("replay", setting, scalars[name])
        self._capture.replay(0, **scalars)  # which checks the names

        def record(number: int) -> None:
            self._capture.replay(1, **{NUMBER: number, **scalars})

        for _ in range(times):
            self._take(record, replaces=self.replaces)

    def close(self) -> None:
        """Give up the memory that the step keeps; it can't be replayed any more."""
        self._capture.close()

    def note_update(self, where: str, groups: Iterable[Settings]) -> int:
        """Note the step's update, and return its number.

        Replays check the ranges of the scalars that are settings.
        """
        if self._updates:
            raise StateError(
                f"{where}: a captured step has one update. Take it by one call, with "
                "settings by name, or capture each update apart."
            )
        self._updates = True
        for settings in groups:
            self._settings |= changeable(settings)
        return self.number

    def finish(self) -> None:
        """Refuse a block that is no step."""
        if not self._updates:
            raise StateError(
                "capture: the block takes no step, by adamw_step() for one. To capture "
                "other calls, use ctx.capture()."
            )
