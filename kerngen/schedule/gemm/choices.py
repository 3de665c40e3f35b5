"""Default schedules of strategy `gemm`: tiles by the size of a product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.analysis.reads import loads
from kerngen.plan.size import ALWAYS, Size, all_of, any_of, compare, select
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import is_of_two_matrices, product_of, sides_of
from kerngen.schedule.gemm.few_kernels import few_kernel_choices
from kerngen.schedule.gemm.shallow import serial_choices, shallow_choices
from kerngen.schedule.gemm.shares import TermShares
from kerngen.schedule.gemm.skinny import skinny_choices
from kerngen.schedule.gemm.strategy import shares_terms, suits_gemm, whole_vectors
from kerngen.schedule.gemm.tiling import (
    HIGH_OPTIONS,
    LARGE_OPTIONS,
    LARGEST_OPTIONS,
    LOW_OPTIONS,
    LOWEST_OPTIONS,
    MEDIUM_OPTIONS,
    MEDIUM_SLICED_OPTIONS,
    SMALL_OPTIONS,
    SMALL_SLICED_OPTIONS,
    TINY_OPTIONS,
    WINDOWED_OPTIONS,
    tiling_of,
)
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Options, Task

START: Final = 1
"""What passes before the first turn and behind the last one, in turns: 0.5 to 1 on an H200."""


@final
@dataclass(frozen=True, slots=True)
class TileTimes:
    """Tiles, with the time of a turn of as many workgroups as run at once.

    `vectors` is that of factors that are read by vectors of four, `single` that of others.
    """

    options: Options
    vectors: int
    single: int


PRODUCT_TILES: Final = (
    TileTimes(SMALL_OPTIONS, 33, 34),
    TileTimes(SMALL_SLICED_OPTIONS, 59, 66),
    TileTimes(MEDIUM_OPTIONS, 41, 52),
    TileTimes(MEDIUM_SLICED_OPTIONS, 85, 93),
    TileTimes(LARGE_OPTIONS, 58, 58),
    TileTimes(LARGEST_OPTIONS, 75, 71),
)
"""The tiles of products: those for which the time, times `TermShares.duration` and `START`, is least.

The times are relative; 22 to 25 are a us on an H200.  Large tiles read less for each sum, and compute 1.6
times as many terms in a unit of time as small ones; but they waste more where they don't fill a
side of the result, or the device.  Slices waste less of a device that few tiles keep busy.  There,
of 297 products with sides of 32 to 4,097, aligned or not, of which no cache has the factors, the
choice takes 1.1 % more than the best of those that were timed, at worst 18 %.
`tests/performance/regret.py` times others.
"""

WINDOW_TILES: Final = tuple(
    TileTimes(options, time, time)
    for options, time in (
        (LOWEST_OPTIONS, 34),
        (LOW_OPTIONS, 38),
        (SMALL_OPTIONS, 46),
        (WINDOWED_OPTIONS, 43),
        (HIGH_OPTIONS, 59),
        (LARGE_OPTIONS, 55),
    )
)
"""The tiles of convolutions and their gradients, as `PRODUCT_TILES`; 20 is about a us on an H200.

The rows are kernels, or channels, and the columns the places of all images.  Of 89 products
there, forward and backward, with 3 to 1,024 channels, 1 x 1 to 7 x 7, the choice takes 1.3 % more
than the best of the six for each, at worst 29 %; tiles of 128 x 64 for all take 48 % more.
"""

NARROW_TRIANGLE: Final = 64
FEW_RESULTS: Final = 512 * 512
"""A triangle has small tiles if a side is up to 64, or its results are up to 512 x 512."""

BOUNDED_TILES: Final[tuple[tuple[int | None, Options], ...]] = (
    (3 << 19, {"tile": (32, 32, 32), "micro": (4, 4)}),
    (1 << 23, {"tile": (64, 64, 16), "micro": (8, 8)}),
    (None, {"tile": (64, 128, 16), "micro": (8, 8)}),
)
"""The tiles of products under a condition, each with the most results that it is for.

Tiles have unlike work, as those of a triangle.  Where one ends, a device begins the next; at
the end some multiprocessors wait for the longest tile, and small tiles make that wait short.
Each tile has a workgroup of its own, as shares would count terms that are left out.  On an
H200, a triangle times a square matrix takes 53 us at 1,024 (64 x 64: 81), 272 us at 2,048
(32 x 32: 322, shares of 128 x 128: 483) and 1.73 ms at 4,096 (1.80).
"""

SMALL_RESULT: Final = 256
TERMS_OF_SMALL: Final = {True: 256, False: 32}
MANY_MATRICES: Final = 16384
TINY_SIDE: Final = 32
TINY_TERMS: Final = 64
MANY_OF_TINY: Final = 2**18
"""Products of many small matrices have an invocation for each result: where a matrix has up to 256
results, and all matrices 16,384 or more.

They have up to 256 terms if neighbouring invocations read neighbours of the right factor (True),
and up to 32 if not.  On an H200, 10,000 products of 8 x 8 matrices take 4.4 us, in tiles 42, of
16 x 16 17 and 47; 100,000 of 3 x 3 6.7 and 384; 1,000 of 8 x 197 by 197 x 8 13 and 25.

Larger ones of up to 32 x 32 results and 64 terms have a tile for each matrix, where all have 2^18
results or more.
"""


def tiled_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the default schedules of a product, each with its guard on the size.

    For a product of two matrices: those for few terms, rows or columns, then those of triangles,
    or the tiles that should take least time.
    """
    found, _ = product_of(task)
    sides = sides_of(task)
    reason = "two factors, each read once per tile"
    if any(len(side) > 1 for side in sides):
        yield from few_kernel_choices(task, reason)
        yield from _fastest(task, reason, WINDOW_TILES)
        return
    is_single = len(task.staged.stages) == 1
    if not is_of_two_matrices(task):
        yield from _of_many_matrices(task, reason, is_single=is_single)
    # Kernels of several stages with more axes are attention, as a rule, of which `flash` runs all:
    # each choice would be a shader that no call runs.
    if is_single or is_of_two_matrices(task):
        yield from _of_few(task, reason)
    if found.is_bounded:
        yield from _bounded(task, reason)
        return
    yield from _fastest(task, reason, PRODUCT_TILES)


def _of_many_matrices(
    task: Task, reason: str, *, is_single: bool
) -> Iterator[ScheduleChoice]:
    """Yield the schedules of products of many small matrices."""
    found, _ = product_of(task)
    rows, columns = map(domain_size, sides_of(task))
    terms, results = domain_size(found.over), domain_size(task.domain)
    small = all_of(
        compare("<=", rows * columns, SMALL_RESULT),
        compare("<=", terms, TERMS_OF_SMALL[found.right_axis == found.column]),
        compare(">=", results, MANY_MATRICES),
    )
    yield ScheduleChoice("generic", "many small matrices", small)
    if is_single:
        tiny = all_of(
            *(compare("<=", side, TINY_SIDE) for side in (rows, columns)),
            compare("<=", terms, TINY_TERMS),
            compare(">=", results, MANY_OF_TINY),
        )
        why = f"{reason}; a tile for each matrix"
        yield ScheduleChoice("gemm", why, tiny, TINY_OPTIONS)


def _of_few(task: Task, reason: str) -> Iterator[ScheduleChoice]:
    """Yield the schedules of products with few terms, rows or columns.

    No tiles are among them for triangles, which have their own, nor if the right factor alone has
    narrow integers: those are weights, with many rows and columns.
    """
    found, _ = product_of(task)
    left, right = (
        any(load.tensor.narrow for load in loads(factor))
        for factor in (found.left, found.right)
    )
    if found.is_bounded:
        yield from serial_choices(task)
    elif left or not right:
        yield from shallow_choices(task, reason)
        yield from skinny_choices(task, reason)


def _bounded(task: Task, reason: str) -> Iterator[ScheduleChoice]:
    """Yield the schedules of products under a condition, such as triangles."""
    results = domain_size(task.domain)
    narrow = (
        compare("<=", domain_size(side), NARROW_TRIANGLE) for side in sides_of(task)
    )
    few = any_of(*narrow, compare("<=", results, FEW_RESULTS))
    why = f"{reason}; there would be few large tiles"
    yield ScheduleChoice("gemm", why, few, SMALL_OPTIONS)
    for most, options in BOUNDED_TILES:
        up_to = ALWAYS if most is None else compare("<=", results, most)
        yield ScheduleChoice(
            "gemm", f"{reason}; tiles have unlike work", up_to, options
        )


def _fastest(
    task: Task, reason: str, tiles: Sequence[TileTimes]
) -> Iterator[ScheduleChoice]:
    """Yield schedules with these tiles, each with the guard that none after it takes less time."""
    least = f"{reason}; these tiles should take least time"
    suited = [each for each in tiles if not suits_gemm(task, each.options)]
    times = [_time(task, each) for each in suited]
    for number, (each, time) in enumerate(zip(suited, times, strict=True)):
        later = times[number + 1 :]
        guard = all_of(*(compare("<=", time, other) for other in later))
        yield ScheduleChoice("gemm", least, guard, each.options)


def _time(task: Task, tiles: TileTimes) -> Size:
    """Return about the time that a product takes in tiles."""
    tiling = tiling_of(tiles.options)
    shares = TermShares.of(task, tiling)
    turns = select(shares_terms(task, tiling), shares.duration, shares.waves)
    if tiling.slices > 1:
        # Slices have few turns.  In the only one, nothing is computed while it is loaded: 10,000
        # products of 200 x 64 by 64 x 10 take 1,400 us on an H200, and 890 in two turns.
        turns = turns * select(compare(">", shares.turns, 1), 1, 2)
    by_vectors, _ = whole_vectors(task)
    return (turns + START) * select(by_vectors, tiles.vectors, tiles.single)
