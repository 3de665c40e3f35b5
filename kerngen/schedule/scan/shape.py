"""How rows that are scanned lie on a workgroup, and how long ones are cut into parts.

A lane holds four runs of a row, of four neighbours each where the sizes allow.  The runs
of one number lie side by side, so that neighbouring lanes read neighbouring memory:

    tile       run 0: lane 0, lane 1, ...    run 1: lane 0, lane 1, ...    ...

A row is scanned tile by tile.
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
"""How many runs a lane holds: as many as a vector has components."""

INVOCATIONS: Final = 256
ALONE: Final = 64
"""From this many lanes on, a row has a workgroup of its own."""

SHORT: Final = (1, 8, 32)
"""Lanes that share a short row, if a tile of them is as long as it."""

MEDIUM: Final = 64
MEDIUM_ROW: Final = 2048
"""So many lanes have a row of at most that length, in one or two tiles.  A tile of 256
lanes would be mostly empty: 65,536 rows of 1,024 take 128 us on an H200, as a copy does,
and took 227."""

LONG_ROW: Final = 8192
MANY_ROWS: Final = 256
"""Fewer rows than that, of more elements, are cut into parts: 256 workgroups with 16
elements in each lane have as much on its way from memory as an H200 needs (4 MB)."""

MAX_PARTS: Final = 2048
"""A row has no more parts: each part sums the totals of all those before it."""


@final
@dataclass(frozen=True, slots=True)
class ScanShape:
    """How many lanes share a row, and the width of a lane's runs: 1 or 4 elements."""

    lanes: int
    width: int

    @property
    def workgroup(self) -> int:
        """The number of lanes of a workgroup."""
        return self.lanes if self.lanes >= ALONE else INVOCATIONS

    @property
    def rows(self) -> int:
        """The number of rows that a workgroup scans."""
        return self.workgroup // self.lanes

    @property
    def step(self) -> int:
        """The distance between two runs of a lane, in elements."""
        return self.lanes * self.width

    @property
    def tile(self) -> int:
        """The number of elements that the lanes of a row hold at once."""
        return self.step * RUNS


def shapes(lanes: int | None, *, alone: bool) -> Iterator[ScanShape]:
    """Yield the shapes to choose from; a row takes the first that suits it.

    Shapes with vectors come first. With `lanes`, this many share each row; with `alone`,
    each row has a workgroup of its own.
    """
    for width in (LANES, 1):
        if lanes is None and not alone:
            yield from (ScanShape(few, width) for few in (*SHORT, MEDIUM))
        yield ScanShape(lanes or INVOCATIONS, width)


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """How a row is cut into parts, at most `most`: whole tiles each, but for the last."""

    index: Index
    tile: int
    most: Size

    @property
    def length(self) -> Size:
        """The length of a part."""
        tiles = ceil_div(ceil_div(self._row, self.most), self.tile)
        return maximum(tiles, 1) * self.tile

    @property
    def count(self) -> Size:
        """The number of parts of a row; a row without elements has none."""
        return ceil_div(self._row, self.length)

    def is_needless(self, long: int, rows: tuple[Index, ...], many: int) -> Guard:
        """Return the condition that rows are too short, or too many, to be cut."""
        short = compare("<=", self._row, long)
        return any_of(short, compare(">=", domain_size(rows), many))

    @property
    def _row(self) -> Size:
        return extent_size(self.index.extent)
