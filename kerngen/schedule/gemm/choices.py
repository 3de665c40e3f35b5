"""Default schedules of strategy `gemm`: tiles by the size of a product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.schedule.choice import ScheduleChoice, both, compare, either, size_of
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.tiling import (
    LARGE_OPTIONS,
    LOW_OPTIONS,
    MANY_WINDOWS_OPTIONS,
    SHALLOW_OPTIONS,
    SLIM_OPTIONS,
    SMALL_OPTIONS,
)
from kerngen.schedule.task import Options, Task

NARROW: Final = 64
SMALL_PRODUCT: Final = 512 * 512
"""A product has small tiles if a side is up to 64, or its results are up to 512 x 512."""

WIDE: Final = 4096
"""From this many columns on, a convolution of few rows has tiles of 16 x 128."""

MANY_WINDOWED: Final = 2**20
"""This many results of a convolution keep a device busy without shares of tiles."""

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

FEWEST_TERMS: Final = 8
SHORT_TERMS: Final = 32
MANY_OF_SHORT: Final = 2**18
"""From 2^18 results on, sums of fewer than 8 terms are serial loops, without tiles; with a
narrow side, sums of up to 32 terms have tiles of 8 terms, as deeper ones would be empty."""


def tiled_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the default schedules of a product, each with its guard on the size.

    For a product of two matrices: serial sums of very few terms, shallow tiles, small ones,
    then those of triangles, or the large ones.
    """
    found, _ = product_of(task)
    sides = sides_of(task)
    narrow = either(*(compare(size_of(side), "<=", NARROW) for side in sides))
    reason = "two factors, each read once per tile"
    small = f"{reason}; there would be few large tiles"
    if any(len(side) > 1 for side in sides):
        yield from _windowed_choices(task, reason, small)
        return
    short = compare(size_of(found.over), "<=", SHORT_TERMS)
    many = compare(size_of(task.domain), ">=", MANY_OF_SHORT)
    if len(task.domain) == 2:  # Points, as a rule: heads of attention have more terms.
        fewest = both(compare(size_of(found.over), "<", FEWEST_TERMS), many)
        yield ScheduleChoice("generic", f"below {FEWEST_TERMS} terms", fewest)
        shallow = both(both(narrow, short), many)
        yield ScheduleChoice(
            "gemm", f"{reason}; there are few terms", shallow, SHALLOW_OPTIONS
        )
    few = compare(size_of(task.domain), "<=", SMALL_PRODUCT)
    yield ScheduleChoice("gemm", small, either(narrow, few), SMALL_OPTIONS)
    if found.is_bounded:
        for most, options in BOUNDED_TILES:
            up_to = None if most is None else compare(size_of(task.domain), "<=", most)
            yield ScheduleChoice(
                "gemm", f"{reason}; tiles have unlike work", up_to, options
            )
        return
    yield ScheduleChoice("gemm", reason, None, LARGE_OPTIONS)


def _windowed_choices(task: Task, reason: str, small: str) -> Iterator[ScheduleChoice]:
    """Yield the tiles of a product with several indices on a side, such as a convolution.

    Of a convolution, the rows are its kernels, and the columns the places of all images.
    """
    rows, columns = map(size_of, sides_of(task))
    low, lower = (compare(rows, "<=", most) for most in (NARROW, NARROW // 2))
    wide = compare(columns, ">=", WIDE)
    yield ScheduleChoice(
        "gemm", f"{reason}; there are few rows", both(lower, wide), LOW_OPTIONS
    )
    many = compare(size_of(task.domain), ">=", MANY_WINDOWED)
    yield ScheduleChoice("gemm", reason, both(many, low), MANY_WINDOWS_OPTIONS)
    narrow = either(lower, compare(columns, "<=", NARROW // 2))
    yield ScheduleChoice("gemm", small, narrow, SMALL_OPTIONS)
    slim = either(low, compare(columns, "<=", NARROW))
    yield ScheduleChoice("gemm", small, slim, SLIM_OPTIONS)
    yield ScheduleChoice("gemm", reason, None, LARGE_OPTIONS)
