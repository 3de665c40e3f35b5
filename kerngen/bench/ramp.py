"""Raising a GPU's clock rate before it is timed.

A GPU that has little to do lowers its clock rate, and takes its time to raise it: an idle H200 runs
at 345 of 1,980 MHz.  After some seconds without work, as while a program makes inputs or compiles, a
product of 1024 x 1024 x 1024 takes 304 us there instead of 54, until it has run for 0.4 s.  A kernel
that is too short to keep the device busy hardly raises the rate by its own launches: a product of
128 x 784 x 256 takes 39 us, after 0.4 s of its launches 30, and 9 at the full rate.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Final, final

import numpy as np

from kerngen.bench.ceilings import SOURCE
from kerngen.bench.measure import Clock, Ramp, clock_of, no_ramp
from kerngen.jit.compiling import load
from kerngen.runtime import Context, f32

_ELEMENTS: Final = 2**22
_SECONDS: Final = 0.005
_LAUNCHES: Final = 16
"""The load has 2^22 elements, which take 67 us on an H200, and as many launches as take 5 ms at the
rate of an idle device, at most 16."""

_PATIENCE: Final = 0.4
"""Seconds after which a rate that did not rise is the highest: an H200 raises it in steps of up to 0.2 s."""

_KEPT: Final = 0.5
"""Seconds for which a device that has nothing to do keeps its rate: an H200 for more than 0.5, and less
than 1."""

_TOLERANCE: Final = 1.05
"""Times that differ by less than this factor are the same."""


@final
class ClockRamp:
    """Keeps a device busy until its clock rate is as high as it ever was.

    For example: `measure(clock, effort, ClockRamp(load_clock(ctx)))`.
    """

    def __init__(self, clock: Clock) -> None:
        """Take the clock of a load."""
        self._clock = clock
        self._shortest = 0.0
        """The shortest time of the load, of all ramps."""
        self._latest = 0.0
        """The shortest time of the load in the latest ramp, which was over at `_over`."""
        self._over = -_KEPT

    def __call__(self) -> None:
        """Run the load until it takes its shortest time, or does not get faster for 0.4 s.

        What it takes then may be longer, as the device is hot or shared.  Within half a second, that
        is taken for its highest rate.
        """
        begin = time.monotonic()
        is_kept = begin - self._over < _KEPT
        enough = _TOLERANCE * (self._latest if is_kept else self._shortest)
        found, risen = float("inf"), begin
        while found > enough and time.monotonic() - risen < _PATIENCE:
            taken = self._clock(self._launches) / self._launches
            if taken * _TOLERANCE < found:
                risen = time.monotonic()
            found = min(found, taken)
        self._latest = found
        self._shortest = min(found, self._shortest or found)
        self._over = time.monotonic()

    @cached_property
    def _launches(self) -> int:
        self._clock(1)  # compiles
        return max(1, min(_LAUNCHES, int(_SECONDS / self._clock(1))))


def ramp_of(ctx: Context) -> Ramp:
    """Return the ramp of a context's device; it does nothing unless that is a GPU."""
    return ClockRamp(load_clock(ctx)) if ctx.kind == "gpu" else no_ramp


def load_clock(ctx: Context) -> Clock:
    """Return a clock for launches of the load: multiplications, each with an addition."""
    x, y = ctx.tensor(np.ones(_ELEMENTS, np.float32)), ctx.empty(_ELEMENTS, f32)
    multiply = load(SOURCE).multiply
    return clock_of(ctx, lambda _: multiply(x, a=0.5, b=0.5, out=y))
