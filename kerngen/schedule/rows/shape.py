"""How rows lie on the lanes of a workgroup: the shapes of strategy `rows`, and their ladders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from kerngen.schedule.lowering.joining import left_to_join
from kerngen.schedule.lowering.values import LANES

INVOCATIONS: Final = 256
"""The most lanes of a row, and so of its workgroup, without the option `lanes`."""

SHARED: Final = 128
"""The lanes of a workgroup that several rows share.

Barriers wait for few others then: on an H200, the softmax of 65,536 rows of 196 takes 30.3 us,
32.1 with 256 lanes, and rows of 33 to 500 elements take up to 5 % less.
"""

ALONE: Final = 64
"""From this many lanes on, a row has a workgroup of its own."""

BLOCK: Final = {1: 8, LANES: 4}
"""How many elements (width 1) or vectors (width 4) of a long row a lane reads at once."""


@final
@dataclass(frozen=True, slots=True)
class RowShape:
    """How the rows lie on the lanes of a workgroup.

    - `lanes`: how many lanes share a row; with 1, no partial results are joined
    - `chunks`: how many elements of the row each lane holds in registers, or vectors where
      `width` is 4; with 0, lanes hold none, and each pass reads the row from memory
    - `width`: 4 if the row is read and written by vectors, else 1
    - `limit`: the longest row, in elements, if `chunks` is 0; None if there is no limit
    """

    lanes: int
    chunks: int
    width: int
    limit: int | None = None

    @property
    def workgroup(self) -> int:
        """The number of lanes of a workgroup."""
        return self.lanes if self.lanes >= ALONE else SHARED

    @property
    def rows(self) -> int:
        """The number of rows that a workgroup handles."""
        return self.workgroup // self.lanes

    @property
    def taken(self) -> int:
        """The number of elements, or vectors, that a lane reads before it uses any."""
        return self.chunks or (1 if self.lanes == 1 else BLOCK[self.width])

    @property
    def step(self) -> int:
        """The number of elements that a row's lanes read with one element or vector each."""
        return self.lanes * self.width

    @property
    def most(self) -> int | None:
        """The length of the longest row that the shape is for; None if there is no limit."""
        return self.step * self.chunks or self.limit


@final
@dataclass(frozen=True, slots=True)
class Ladder:
    """Several row shapes that share one shader: overrides of the pipeline set the shape.

    In the shader's text up to `lanes` lanes share a row, and a lane holds `chunks` elements
    or vectors; a shape may hold fewer of them, but at least `least`.  Those beyond `least` are
    under a condition, `if ((CHUNKS > 2u) & (j2 < row_length))`, which the driver folds when
    the overrides are known, so that it costs nothing.
    """

    name: str
    least: int
    chunks: int
    lanes: int

    @classmethod
    def of(cls, name: str, shapes: Sequence[RowShape]) -> Ladder:
        """Return the ladder whose shader, an entry point `name`, covers all of some shapes."""
        chunks = [shape.chunks for shape in shapes]
        return cls(name, min(chunks), max(chunks), max(shape.lanes for shape in shapes))

    def constants(self, shape: RowShape) -> dict[str, int]:
        """Return the values of the overrides for a shape, by their names in the shader."""
        constants = {
            "LANES": shape.lanes,
            "WORKGROUP": shape.workgroup,
            "LAST": left_to_join(shape.lanes),
        }
        if self.least < self.chunks:
            constants["CHUNKS"] = shape.chunks
        return constants
