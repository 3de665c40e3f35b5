"""The ceilings of an adapter, measured: memory bandwidth and arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from kerngen.bench.case import BenchCase, kernel_case
from kerngen.bench.measure import Ramp, SamplingLimits, clock_of, measure, no_ramp
from kerngen.jit.compiling import load
from kerngen.runtime import Context

SOURCE: Final = Path(__file__).with_suffix(".kern")
"""The kernels that are timed: a copy, and multiplications."""

_MULTIPLICATIONS: Final = 512
"""The `fma` for each element of the kernel `multiply` in `ceilings.kern`."""
_COPIED: Final = {"gpu": 2**28, "software": 2**22, "reference": 2**20}
"""The elements to copy, by kind of adapter."""
_MULTIPLIED: Final = {"gpu": 2**25, "software": 2**18, "reference": 2**10}
"""The elements to multiply, by kind of adapter."""


@final
@dataclass(frozen=True, slots=True)
class Ceilings:
    """Measured bytes per second of a copy, and operations per second of `fma`."""

    bytes: float
    operations: float

    def least(self, case: BenchCase) -> float:
        """Return the shortest time in seconds that the ceilings allow for a case."""
        return max(case.bytes / self.bytes, case.operations / self.operations)


def find_ceilings(
    ctx: Context, effort: SamplingLimits, ramp: Ramp = no_ramp
) -> Ceilings:
    """Measure the ceilings by a copy, and by a kernel of many `fma`."""
    kernels = load(SOURCE)
    copied = min(_COPIED[ctx.kind], ctx.max_tensor_bytes // 4)
    copy = kernel_case(kernels.copy, {"n": copied}, 0)
    n = _MULTIPLIED[ctx.kind]
    multiply = kernel_case(kernels.multiply, {"n": n}, 2 * _MULTIPLICATIONS * n)
    return Ceilings(
        copy.bytes / _seconds(ctx, copy, effort, ramp),
        multiply.operations / _seconds(ctx, multiply, effort, ramp),
    )


def _seconds(
    ctx: Context, case: BenchCase, effort: SamplingLimits, ramp: Ramp
) -> float:
    try:
        return measure(clock_of(ctx, case.prepare(ctx)), effort, ramp).median
    finally:
        ctx.trim()
