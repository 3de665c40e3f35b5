"""Default schedules of convolutions of many places by few kernels, or of few terms.

    64 images of 3 x 64 x 64 by 32 kernels of 3 x 3           32 kernels, 27 terms, 262,144 places
    32 images of 3 x 224 x 224 by 96 of 4 x 4, stride 4       96 kernels, 48 terms, 100,352 places

Their tiles are flat: an invocation has four columns, and so the places of four windows, where that of
other tiles has eight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.plan.size import all_of, any_of, compare
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.phases import phases_of
from kerngen.schedule.gemm.tiling import MULTIPROCESSORS
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Options, Task

MANY_PLACES: Final = 2**15
FEWEST_KERNELS: Final = 17
TERMS_BY_KERNELS: Final = ((32, 1024), (96, 48))
TERMS_OF_ANY: Final = 32
"""For 2^15 places or more and 17 kernels or more: up to 1,024 terms of up to 32 kernels, 48 of up to
96, and 32 of any number."""

FLAT_TILES: Final[Options] = {"tile": (32, 128, 8), "micro": (8, 4)}
SHARED_TILES: Final[Options] = {**FLAT_TILES, "stream": (8 * MULTIPROCESSORS,)}
"""Gradients by images, of which tiles have phases, share their terms.  On an H200, in us, beside
the fastest of `WINDOW_TILES`:

| convolution | a tile each | shares | those |
| --- | --- | --- | --- |
| 64 x 3 x 64 x 64 by 32 of 3 x 3 | 36 | 41 | 49 |
| 8 x 24 x 112 x 112 by 24 of 3 x 3 | 60 | 78 | 87 |
| 8 x 48 x 100 x 100 by 32 of 3 x 3 | 98 | 137 | 129 |
| 1 x 32 x 512 x 512 by 32 of 3 x 3 | 198 | 223 | 269 |
| 1 x 256 x 200 x 200 by 32 of 3 x 3 | 348 | 272 | 332 |
| 64 x 3 x 10,000 by 32 of 9 | 73 | 77 | 99 |
| 16 x 64 x 64 x 64 by 24 of 1 x 1 | 12 | 14 | 18 |
| 32 x 24 x 56 x 56 by 144 of 1 x 1 | 39 | | 56 |
| 32 x 48 x 56 x 56 by 96 of 1 x 1 | 41 | | 43 |
| 32 x 48 x 56 x 56 by 128 of 1 x 1 | 49 | | 43 |
| 32 x 48 x 56 x 56 by 1,024 of 1 x 1 | 341 | | 285 |
| 32 x 3 x 224 x 224 by 96 of 4 x 4, stride 4 | 51 | | 73 |
| 16 x 3 x 128 x 128 by 256 of 3 x 3 | 237 | | 377 |
| 8 x 64 x 56 x 56 by 128 of 3 x 3 | 146 | 191 | 111 |
| gradient of 8 x 32 x 100 x 100 by 48 of 3 x 3 | 141 | 99 | 128 |
| gradient of 4 x 20 x 131 x 131 by 20 of 5 x 5 | 141 | 120 | 131 |
| gradient of 2 x 32 x 256 x 256 by 32 of 3 x 3, stride 2 | 44 | 44 | 57 |
"""


def few_kernel_choices(task: Task, reason: str) -> Iterator[ScheduleChoice]:
    """Yield the schedule of a convolution of many places by few kernels, or of few terms."""
    kernels, places = map(domain_size, sides_of(task))
    terms = domain_size(product_of(task)[0].over)
    by_kernels = (
        all_of(compare("<=", kernels, most), compare("<=", terms, most_terms))
        for most, most_terms in TERMS_BY_KERNELS
    )
    few = any_of(*by_kernels, compare("<=", terms, TERMS_OF_ANY))
    guard = all_of(
        compare(">=", kernels, FEWEST_KERNELS), compare(">=", places, MANY_PLACES), few
    )
    why = f"{reason}; there are few kernels or terms"
    options = FLAT_TILES if phases_of(task) is None else SHARED_TILES
    yield ScheduleChoice("gemm", why, guard, options)
