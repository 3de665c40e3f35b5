"""Timing of launches: the median of samples, each of many launches in a row."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.runtime import Context, f32

Launch: TypeAlias = Callable[[int], object]
"""A function that starts some work; its argument counts launches, to rotate the inputs."""
Clock: TypeAlias = Callable[[int], float]
"""A function that makes so many launches in a row, and returns the seconds they take."""
Ramp: TypeAlias = Callable[[], object]
"""A function that raises the device's clock rate before it is timed: a `ClockRamp`, or `no_ramp`."""


def no_ramp() -> None:
    """Leave the clock rate as it is."""


@final
@dataclass(frozen=True, slots=True)
class SamplingLimits:
    """Limits of one measurement: samples, launches of each sample, and seconds for all.

    Before them there are `warm_up` seconds of launches that do not count.
    """

    samples: int = 20
    launches: int = 100
    seconds: float = 1.0
    warm_up: float = 0.02


@final
@dataclass(frozen=True, slots=True)
class Timing:
    """A timing: seconds of one launch, as the median and quartiles of samples.

    Each sample was of `launches` launches.
    """

    median: float
    low: float
    high: float
    samples: int
    launches: int

    @property
    def spread(self) -> float:
        """The distance of the quartiles, as a fraction of the median."""
        return (self.high - self.low) / self.median


def measure(clock: Clock, effort: SamplingLimits, ramp: Ramp = no_ramp) -> Timing:
    """Return the timing of a launch, from three samples or more.

    Launches that compile and warm up do not count.
    """
    (timing,) = measure_in_turn([clock], effort, ramp)
    return timing


def measure_in_turn(
    clocks: Sequence[Clock], effort: SamplingLimits, ramp: Ramp = no_ramp
) -> list[Timing]:
    """Return the timings of several clocks, sampled in turn.

    So a drift of the machine, such as of its clock frequency, affects all of them alike.
    """
    make_ready(clocks, ramp)
    launches = [_fitting(clock, effort) for clock in clocks]
    begin = time.perf_counter()
    taken: list[list[float]] = [[] for _ in clocks]
    for number in range(effort.samples):
        spent = time.perf_counter() - begin
        if number >= 3 and spent > 2 * effort.seconds * len(clocks):
            break
        for clock, count, own in zip(clocks, launches, taken, strict=True):
            own.append(clock(count) / count)
    return [_timing(own, n) for own, n in zip(taken, launches, strict=True)]


def make_ready(clocks: Sequence[Clock], ramp: Ramp) -> None:
    """Compile what clocks launch, and raise the clock rate that fell meanwhile."""
    for clock in clocks:
        clock(1)
    ramp()


def warm_up(clock: Clock, effort: SamplingLimits) -> float:
    """Run launches that do not count; return the seconds of one at the end."""
    each, count = clock(1), 1
    spent = each
    while spent < effort.warm_up:
        count = min(2 * count, effort.launches)
        each = clock(count) / count
        spent += each * count
    return max(each, 1e-9)


def _fitting(clock: Clock, effort: SamplingLimits) -> int:
    """Warm up; return the number of launches of a sample that fits the limits."""
    each = warm_up(clock, effort)
    return max(1, min(effort.launches, int(effort.seconds / effort.samples / each)))


def _timing(taken: list[float], launches: int) -> Timing:
    low, _, high = statistics.quantiles(taken, n=4) if len(taken) > 1 else taken * 3
    return Timing(statistics.median(taken), low, high, len(taken), launches)


@final
class DeviceClock:
    """Times launches by timestamps of the device."""

    def __init__(self, ctx: Context, launch: Launch) -> None:
        """Time `launch`, which gets the number of the launch, counted over all samples."""
        self._ctx = ctx
        self._launch = launch
        self._turn = 0

    def __call__(self, launches: int) -> float:
        """Return the seconds that `launches` launches take."""
        with self._ctx.timed() as span:
            for turn in range(self._turn, self._turn + launches):
                self._launch(turn)
        self._turn += launches
        return span.seconds


@final
class WallClock:
    """Times launches by the host's clock, with a wait at the end or after each."""

    def __init__(
        self, launch: Launch, finish: Callable[[], object], *, reads: bool = False
    ) -> None:
        """Time `launch`; `finish` waits for the end, after each one if `reads`."""
        self._launch = launch
        self._finish = finish
        self._reads = reads
        self._turn = 0

    def __call__(self, launches: int) -> float:
        """Return the seconds that `launches` launches take."""
        self._finish()
        begin = time.perf_counter()
        for turn in range(self._turn, self._turn + launches):
            self._launch(turn)
            if self._reads:
                self._finish()
        if not self._reads:
            self._finish()
        self._turn += launches
        return time.perf_counter() - begin


@final
@dataclass(frozen=True, slots=True)
class Clocks:
    """A device clock, and host clocks for the same launches.

    `loop` times launches in a row, the wait at the end included; `read` each launch with
    a read behind it, so that the host waits for every one.
    """

    device: Clock
    loop: Clock
    read: Clock

    def __call__(self, launches: int) -> float:
        """Return the device's seconds for `launches` launches."""
        return self.device(launches)


def clocks_of(ctx: Context, launch: Launch) -> Clocks:
    """Return the clocks for launches on a context."""
    probe = ctx.zeros((), f32)
    return Clocks(
        clock_of(ctx, launch),
        WallClock(launch, probe.numpy),
        WallClock(launch, probe.numpy, reads=True),
    )


def clock_of(ctx: Context, launch: Launch) -> Clock:
    """Return the device's clock for launches, or the host's if it has no timestamps."""
    if has_timestamps(ctx):
        return DeviceClock(ctx, launch)
    probe = ctx.zeros((), f32)
    return WallClock(launch, probe.numpy)


def has_timestamps(ctx: Context) -> bool:
    """Whether the device itself times launches."""
    return ctx.kind == "reference" or "timestamp-query" in ctx.device.features
