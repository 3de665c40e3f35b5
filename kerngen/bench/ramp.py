"""Raising a GPU's clock rate before it is timed.

A GPU that has little to do lowers its clock rate, and takes its time to raise it: an idle H200 runs
at 345 of 1,980 MHz.  After some seconds without work, as while a program makes inputs or compiles, a
product of 1024 x 1024 x 1024 takes 304 us there instead of 54, until it has run for 0.4 s.  Kernels
that are too short to keep the device busy raise the rate late: 128 x 784 x 256 takes 39 us instead of
9, and still 30 after 0.4 s.
"""

from __future__ import annotations

import time
from typing import Final, final

from kerngen.bench.case import kernel_case
from kerngen.bench.ceilings import SOURCE
from kerngen.bench.measure import Clock, Ramp, clock_of, no_ramp
from kerngen.jit.compiling import load
from kerngen.runtime import Context

_ELEMENTS: Final = 2**22
_LAUNCHES: Final = 16
"""The load: 2^22 elements are 67 us on an H200, and 16 launches of them a check of 1 ms."""

_LONGEST: Final = 1.0
"""Seconds that a device has to raise its rate; an H200 takes 0.4."""

_TOLERANCE: Final = 1.05
"""A device is at its full rate if the load takes at most this multiple of its shortest time."""


@final
class ClockRamp:
    """Keeps a device busy until its clock rate is as high as it was.

    For example: `measure(clock, effort, ClockRamp(load))`.
    """

    def __init__(self, load: Clock) -> None:
        """Take the clock of the load."""
        self._load = load
        self._shortest = 0.0

    def __call__(self) -> None:
        """Run the load until it takes its shortest time, or for a second.

        The shortest time is not known before the first second.  A device that has become slower for
        good, as it is hot or shared, needs only one, too: what the load takes then counts from there on.
        """
        end, shortest = time.monotonic() + _LONGEST, float("inf")
        while time.monotonic() < end:
            shortest = min(shortest, self._load(_LAUNCHES))
            if shortest <= _TOLERANCE * self._shortest:
                self._shortest = min(shortest, self._shortest)
                return
        self._shortest = shortest


def ramp_of(ctx: Context) -> Ramp:
    """Return the ramp of a context's device; it does nothing unless that is a GPU."""
    return ClockRamp(load_clock(ctx)) if ctx.kind == "gpu" else no_ramp


def load_clock(ctx: Context) -> Clock:
    """Return a clock for launches of the load."""
    case = kernel_case(load(SOURCE).multiply, {"n": _ELEMENTS}, 0)
    return clock_of(ctx, case.prepare(ctx))
