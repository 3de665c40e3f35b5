"""What a profile collects while work is recorded, and reads when it has run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.runtime.gpu import Device
from kerngen.runtime.native import tick_seconds
from kerngen.runtime.plan import Origin, Step
from kerngen.runtime.profile import Event
from kerngen.runtime.timing import Stamps

PASSES = 1024
"""How many passes share a set of queries; WebGPU allows 4096 queries, two for each."""


@final
@dataclass(frozen=True, slots=True)
class _Noted:
    """A dispatch, recorded in the next pass of a set."""

    kernel: str
    call: int
    origin: Origin


@final
class Tracer:
    """Timestamps around single dispatches; needs the context's lock but for `read`."""

    def __init__(self, device: Device) -> None:
        """Start with nothing noted."""
        self._device = device
        self._sets: list[tuple[Stamps, list[_Noted]]] = []
        self._recording = -1

    def note(self, recording: int, call: int, kernel: str, step: Step) -> Stamps:
        """Note a dispatch of a recording; return the timestamps of its pass."""
        if recording != self._recording or not self._sets[-1][0].room:
            # A set is resolved by the submission that writes it.
            self._sets.append((Stamps(self._device, PASSES), []))
            self._recording = recording
        stamps, noted = self._sets[-1]
        noted.append(_Noted(kernel, call, step.origin))
        return stamps

    def read(self) -> tuple[Event, ...]:
        """Wait for what was submitted; return it without what errors lost."""
        timed = [
            (noted, begin, end)
            for stamps, several in self._sets
            if stamps.submitted
            for noted, (begin, end) in zip(several, stamps.read().tolist(), strict=True)
        ]
        # A clock that began long ago has more digits than a float.
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
