"""How the rows of a scan are spread over lanes, and how long rows are cut into parts.

A row is scanned tile by tile.  In a tile, a lane has four runs of four neighbours each, or
of one element where rows can't be read as vectors.  The first runs of all lanes lie side by
side, so that neighbouring lanes read neighbouring memory:

    tile       | run 0                 | run 1                 | run 2 ...
    lane       | 0000 1111 2222 ...    | 0000 1111 2222 ...    | 0000 ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan.size import Guard, Size, any_of, ceil_div, compare, maximum
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.sizes import domain_size, extent_size

RUNS: Final = 4
"""How many runs a lane has: their totals are the components of one vector."""

INVOCATIONS: Final = 256
"""How many lanes share a row longer than `MEDIUM_ROW`, or the only row of a kernel."""

ALONE: Final = 64
"""From this many lanes on, a row has a workgroup of its own."""

SHORT: Final = (1, 8, 32)
"""How many lanes share a short row: the first number whose tile is as long as the row.

With runs of four, a lane takes 16 elements of a tile: rows of up to 16, 128 and 512.
"""

MEDIUM: Final = 64
"""How many lanes share a row of up to `MEDIUM_ROW` elements."""

MEDIUM_ROW: Final = 2048
"""The longest row for `MEDIUM` lanes: two tiles of 64 lanes with 16 elements each.

A tile of 256 lanes would be mostly empty: 65,536 rows of 1,024 take 128 us on an H200, as
a copy does, and took 227.
"""

LONG_ROW: Final = 8192
"""The longest row, in elements, that is never cut into parts."""

MANY_ROWS: Final = 256
"""From this many rows on, none is cut: there are workgroups enough.

256 workgroups of 256 lanes with 16 elements each keep 4 MB on the way from memory, as much
as an H200 needs.
"""

MAX_PARTS: Final = 2048
"""The most parts of a row: each part adds up the totals of all parts before it."""


@final
@dataclass(frozen=True, slots=True)
class ScanShape:
    """How many lanes share a row, and the width of a lane's runs: 1 or 4 elements.

    With 8 lanes and a width of 4, a workgroup of 256 lanes scans 32 rows, the runs of a
    lane are 32 elements apart, and a tile has 128 elements.
    """

    lanes: int
    width: int

    @property
    def workgroup(self) -> int:
        """The number of lanes of a workgroup."""
        return self.lanes if self.lanes >= ALONE else INVOCATIONS

    @property
    def rows(self) -> int:
        """The number of rows that a workgroup scans side by side."""
        return self.workgroup // self.lanes

    @property
    def step(self) -> int:
        """How many elements apart two runs of a lane begin."""
        return self.lanes * self.width

    @property
    def tile(self) -> int:
        """The number of elements that the lanes of a row scan in one turn."""
        return self.step * RUNS


def shapes(lanes: int | None, *, alone: bool) -> Iterator[ScanShape]:
    """Yield the shapes to choose from; rows are scanned by the first one that suits them.

    Shapes with vectors come first.  With `lanes`, this many share each row; with `alone`,
    each row has a workgroup of its own.
    """
    for width in (LANES, 1):
        if lanes is None and not alone:
            yield from (ScanShape(few, width) for few in (*SHORT, MEDIUM))
        yield ScanShape(lanes or INVOCATIONS, width)


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """How a row along `index` is cut into at most `most` parts.

    Each part has whole tiles of `tile` elements, but the last one may end within a tile.
    """

    index: Index
    tile: int
    most: Size

    @property
    def length(self) -> Size:
        """The length of a part in elements; one tile for a row without elements."""
        tiles = ceil_div(ceil_div(self._row, self.most), self.tile)
        return maximum(tiles, 1) * self.tile

    @property
    def count(self) -> Size:
        """The number of parts of a row; a row without elements has none."""
        return ceil_div(self._row, self.length)

    def is_needless(self, long: int, rows: tuple[Index, ...], many: int) -> Guard:
        """Return the guard that rows stay whole: up to `long` elements, or from `many` rows."""
        short = compare("<=", self._row, long)
        return any_of(short, compare(">=", domain_size(rows), many))

    @property
    def _row(self) -> Size:
        return extent_size(self.index.extent)
