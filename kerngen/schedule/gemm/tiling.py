"""The tile sizes of strategy `gemm`, and the conditions that they must satisfy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.schedule.task import Options

VECTOR: Final = 4
MOST_SUMS: Final = 256
MOST_TERMS: Final = 64
"""Bounds of the unrolled code: sums of an invocation, and terms of a turn.  Each term has a
statement for every four sums."""

MOST_INVOCATIONS: Final = 1024
GROUP: Final = 32
"""How many invocations are taken for a subgroup, and form a block of a tile."""


@final
@dataclass(frozen=True, slots=True)
class Tiling:
    """The tiling of a product: what a workgroup, and each of its invocations, computes.

    - `m x n`: the elements of a workgroup; each turn of its loop adds `k` terms to them
    - `micro_m x micro_n`: the elements of an invocation, as vectors of 4
    - `pad`: the vectors that are added to each row in workgroup memory
    - `buffers`: how many tiles of each operand are in workgroup memory; with 2, the next
      one is loaded while the one before is used
    - `lane_columns x lane_rows`: how 32 neighbouring invocations lie in the tile
    - `stream`: how many workgroups share the terms of all tiles (`stream.py`); with 0,
      each has a tile
    - `slices`: how many invocations share the terms of an element, in each turn (`slices.py`)

    The default tile, 128 x 128 of 8 x 16 each, has 8 columns and 16 rows of invocations.
    """

    m: int = 128
    n: int = 128
    k: int = 16
    micro_m: int = 8
    micro_n: int = 16
    pad: int = 0
    buffers: int = 1
    lane_columns: int = 8
    lane_rows: int = 4
    stream: int = 0
    slices: int = 1

    @property
    def columns(self) -> int:
        """The number of invocations of a workgroup along n."""
        return self.n // self.micro_n

    @property
    def rows(self) -> int:
        """The number of invocations of a workgroup along m."""
        return self.m // self.micro_m

    @property
    def sums(self) -> int:
        """The number of sums of an invocation."""
        return self.micro_m * self.micro_n

    @property
    def slice_invocations(self) -> int:
        """The number of invocations of a slice, which has all elements of the tile."""
        return self.rows * self.columns

    @property
    def slice_terms(self) -> int:
        """The number of terms that an invocation adds in a turn."""
        return self.k // self.slices

    @property
    def invocations(self) -> int:
        """The number of invocations of a workgroup."""
        return self.slice_invocations * self.slices

    @property
    def slice_lines(self) -> int:
        """How many lines of the larger factor's tile hold a vector of each invocation of a slice."""
        return -(-self.slice_invocations * VECTOR // max(self.m, self.n))

    @property
    def sums_at_once(self) -> int:
        """How many vectors of sums an invocation keeps in that tile, with half of the slices."""
        return self.k // (self.slice_lines * max(self.slices // 2, 1))

    def faults(self) -> Iterator[str]:
        """Yield the first fault of the tile sizes, if any, in the user's words."""
        tile, micro = (self.m, self.n, self.k), (self.micro_m, self.micro_n)
        lanes = (self.lane_columns, self.lane_rows)
        if any(size % VECTOR or not size for size in (*micro, self.k)):
            yield "micro's sizes and tile's k must be positive multiples of 4"
        elif not self.m or not self.n or self.m % micro[0] or self.n % micro[1]:
            yield f"micro{micro} does not divide tile{tile}"
        elif micro[0] * micro[1] > MOST_SUMS or self.k > MOST_TERMS:
            yield (
                f"an invocation keeps at most {MOST_SUMS} sums, and a turn adds at "
                f"most {MOST_TERMS} terms"
            )
        elif self.invocations > MOST_INVOCATIONS:
            sliced = f" slices({self.slices})" if self.slices > 1 else ""
            yield (
                f"tile{tile} micro{micro}{sliced} takes {self.invocations} invocations, and no "
                f"adapter runs more than {MOST_INVOCATIONS}"
            )
        elif lanes[0] * lanes[1] != GROUP:
            yield f"lanes{lanes} are not {GROUP}"
        elif self.columns % lanes[0] or self.rows % lanes[1]:
            yield (
                f"lanes{lanes} do not divide the {self.columns} x {self.rows} "
                f"invocations of a tile"
            )
        elif self.slices > 1:
            yield from self._slice_faults()

    def _slice_faults(self) -> Iterator[str]:
        """Yield the first fault of the slices, if any."""
        tile, terms = (self.m, self.n, self.k), self.slice_terms
        powers = not any(size & (size - 1) for size in (self.slices, self.k))
        if not powers or terms < VECTOR:
            yield (
                f"with slices({self.slices}), the count and tile's k must be powers of 2, and k "
                f"at least {VECTOR * self.slices}"
            )
        elif not self.sums_at_once:
            yield (
                f"tile{tile} has no place for the sums of slices({self.slices}): fewer slices, or "
                f"a larger k"
            )


DEFAULT: Final = Tiling()
"""The tiling of a schedule without options.

It takes 16 KiB of workgroup memory and 128 invocations: inside WebGPU's default limits.
"""

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "tile": ("m", "n", "k"),
    "micro": ("micro_m", "micro_n"),
    "pad": ("pad",),
    "buffers": ("buffers",),
    "lanes": ("lane_columns", "lane_rows"),
    "stream": ("stream",),
    "slices": ("slices",),
}
"""The fields that each option of `gemm` sets, in the order of its values."""


_LANES: Final = ((8, 4), (4, 8), (16, 2), (2, 16), (32, 1), (1, 32))
"""Arrangements of 32 invocations, as columns and rows; the squarest are tried first.

The squarer the block, the fewer vectors its invocations read of each block of both tiles:
8 + 4 for (8, 4), 32 + 1 for (32, 1).
"""


def tiling_of(options: Options) -> Tiling:
    """Return the tiling that a schedule's options ask for.

    Without the option `lanes`, 32 invocations are arranged by the first of `_LANES` that
    divides the tile's invocations.
    """
    given = {
        field: value
        for option, values in options.items()
        if option in FIELDS
        for field, value in zip(FIELDS[option], values, strict=True)
    }
    tiling = Tiling(**given)
    if "lanes" in options:
        return tiling
    arranged = (replace(tiling, lane_columns=c, lane_rows=r) for c, r in _LANES)
    return next((t for t in arranged if not any(t.faults())), tiling)


MULTIPROCESSORS: Final = 132
"""How many multiprocessors a device is taken to have: as many as an H100 or H200.

WebGPU has no limit that names it.
"""

# The tiles of the default schedules; `choices.py` has the sizes for which each is chosen.
# `stream` is as many workgroups as run at once.

SMALL_OPTIONS: Final[Options] = {
    "tile": (32, 32, 32),
    "micro": (4, 4),
    "stream": (4 * MULTIPROCESSORS,),
}
"""For small products, which would have few large tiles."""

SMALL: Final = tiling_of(SMALL_OPTIONS)

SMALL_SLICED_OPTIONS: Final[Options] = {
    "tile": (32, 32, 64),
    "micro": (4, 4),
    "stream": (4 * MULTIPROCESSORS,),
    "slices": (2,),
}
"""For small products of more than 64 terms, with too few tiles to keep a device busy: 512 x 512 x 512
takes 13 us on an H200, and 16 in tiles of 32 x 32 x 32 without slices."""

TINY_OPTIONS: Final[Options] = {"tile": (32, 32, 8), "micro": (4, 4)}
"""For many matrices of up to 32 x 32 results: 5,000 products of 18 x 18 take 58 us on an H200, and
98 in tiles of 32 terms; of 24 x 24 40 and 64, 2,000 of 28 x 28 20 and 27."""

LOWEST_OPTIONS: Final[Options] = {
    "tile": (8, 128, 8),
    "micro": (4, 4),
    "stream": (8 * MULTIPROCESSORS,),
}
LOW_OPTIONS: Final[Options] = {
    "tile": (16, 128, 8),
    "micro": (4, 4),
    "stream": (8 * MULTIPROCESSORS,),
}
"""For windows with few rows, as the channels of photographs.

With 16 terms a turn, an invocation would have more places of windows than registers.  On an H200,
in us; the last takes 172 in tiles of 4 x 512 x 4, and no other of six tilings of 4 and 8 rows was more
than 10 % faster than 8 x 128 x 8:

| windows | 8 x 128 x 8 | 16 x 128 x 8 | 16 x 128 x 16 |
| --- | --- | --- | --- |
| gradient of 8 x 3 x 224 x 224 by 64 x 7 x 7, stride 2 | 394 | 565 | 671 |
| gradient of 16 x 3 x 128 x 128 by 32 x 3 x 3, stride 2 | 39 | 52 | 68 |
| gradient of 8 x 16 x 56 x 56 by 64 x 3 x 3 | 50 | 39 | 45 |
| 1 x 64 x 80 x 80 by 3 x 3 x 3 | 17 | 17 | 25 |
| 2 x 128 x 28 x 28 by 8 x 3 x 3 | 16 | 14 | 22 |
| 8 x 320 x 64 x 64 by 4 x 3 x 3 | 133 | 177 | 262 |
| 4 x 64 x 256 x 256 by 3 x 3 x 3 | 201 | 268 | 394 |
"""

WINDOWED_OPTIONS: Final[Options] = {
    "tile": (64, 64, 16),
    "micro": (4, 8),
    "stream": (4 * MULTIPROCESSORS,),
}
"""For windows, with twice the lanes of `MEDIUM_OPTIONS`, which share what places cost: 2 images
of 48 x 30 x 30 by 40 kernels of 3 x 3 take 16 us, and 26 with 64 lanes."""

HIGH_OPTIONS: Final[Options] = {
    "tile": (96, 128, 16),
    "micro": (8, 8),
    "stream": (2 * MULTIPROCESSORS,),
}
"""For rows that fill 96 and not 128, as of 96 or 192 kernels: 16 images of 96 x 48 x 48 by 96
kernels of 3 x 3 take 10 % less than in tiles of 128 x 64."""

MEDIUM_OPTIONS: Final[Options] = {
    "tile": (64, 64, 16),
    "micro": (8, 8),
    "stream": (4 * MULTIPROCESSORS,),
}
"""For products of middle size."""

MEDIUM_SLICED_OPTIONS: Final[Options] = {
    "tile": (64, 64, 32),
    "micro": (8, 8),
    "stream": (4 * MULTIPROCESSORS,),
    "slices": (2,),
}
"""For products of middle size with one or two tiles for a multiprocessor: 1024 x 1024 x 1024 takes
54 us on an H200, and 60 to 63 in tiles of 64 x 64 x 16, 128 x 64 and 128 x 128.  Turns of 64 terms
in four slices are faster where there are about as many tiles as multiprocessors (640 x 640 x 640: 20
us, and 27), slower elsewhere (62), and need 32 KiB of workgroup memory."""

LARGE_OPTIONS: Final[Options] = {
    "tile": (128, 64, 16),
    "micro": (8, 8),
    "stream": (3 * MULTIPROCESSORS,),
}
LARGEST_OPTIONS: Final[Options] = {"stream": (2 * MULTIPROCESSORS,)}
"""For large products: an H200 runs three workgroups with tiles of 128 x 64 on each of its 132
multiprocessors, 396 in all, and two with tiles of 128 x 128 and 8 x 16 sums.

`choices.py` has the rule between the two.  Products on an H200, without wgpu's checks, in us:

| product | 64 x 64 | 128 x 64 | 128 x 128 |
| --- | --- | --- | --- |
| 640 x 640 x 640, `nn` | 23 | 25 | 25 |
| 1920 x 76 x 2424, `nn` | 27 | 31 | 42 |
| 300 x 1200 x 2800, `nt` | 66 | 75 | 80 |
| 256 x 4096 x 4096, `nt` | 223 | 216 | 219 |
| 1111 x 333 x 2222, `nn` | 93 | 60 | 76 |
| 2048 x 512 x 2048, `tn` | 123 | 123 | 96 |
| 2048 x 2048 x 2048, `nt` | 424 | 442 | 388 |
"""
