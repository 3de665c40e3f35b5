"""The tracer of a profile: timestamps of each dispatch, read when all has run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.runtime.calls.call_plan import Origin, PlannedDispatch
from kerngen.runtime.device.gpu import Device
from kerngen.runtime.device.native import tick_seconds
from kerngen.runtime.device.timing import Stamps, TimestampSlots
from kerngen.runtime.profile import Event

PASSES = 1024
"""The passes that share a query set, with two queries each; WebGPU allows 4,096 queries."""


@final
@dataclass(frozen=True, slots=True)
class _Noted:
    """The names of a dispatch, whose timestamps are those of the pass with its position."""

    kernel: str
    call: int
    origin: Origin


@final
class Tracer:
    """Timestamps around single dispatches; all but `read` needs the context's lock."""

    def __init__(self, device: Device) -> None:
        """Start with nothing noted."""
        self._device = device
        self._recordings: list[tuple[Stamps, list[_Noted]]] = []
        self._recording = -1
        self._slots: TimestampSlots | None = None
        self._events: tuple[Event, ...] | None = None

    def note(
        self, recording: int, call: int, kernel: str, step: PlannedDispatch
    ) -> Stamps:
        """Add a dispatch to the profile, and return the timestamps for its own pass.

        `recording` and `call` are the numbers of the recording and of the call.
        """
        if self._slots is None or not self._slots.room:
            self._slots = TimestampSlots(self._device, PASSES)
            self._recording = -1
        if recording != self._recording:
            # Each submission resolves the timestamps of its own passes: one `Stamps` each.
            self._recordings.append((Stamps(self._slots), []))
            self._recording = recording
        stamps, noted = self._recordings[-1]
        noted.append(_Noted(kernel, call, step.origin))
        return stamps

    def read(self) -> tuple[Event, ...]:
        """Wait for submitted work, and return its events; later calls return the same events.

        Work that an error lost has no events.
        """
        if self._events is None:
            self._events = self._read()
        return self._events

    def _read(self) -> tuple[Event, ...]:
        timed = [
            (noted, begin, end)
            for stamps, several in self._recordings
            if stamps.submitted
            for noted, (begin, end) in zip(several, stamps.read().tolist(), strict=True)
        ]
        # Ticks are counted from the first event, as integers: a clock that began long ago
        # has more digits than a float.
        first = min((begin for _, begin, _ in timed), default=0)
        tick = tick_seconds(self._device)
        return tuple(
            Event(
                kernel=noted.kernel,
                stage=noted.origin.stage,
                strategy=noted.origin.strategy,
                shader=noted.origin.shader,
                call=noted.call,
                start=(begin - first) * tick,
                seconds=max(end - begin, 0) * tick,
            )
            for noted, begin, end in timed
        )
