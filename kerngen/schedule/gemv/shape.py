"""The options of `gemv` as numbers: how the lanes of a workgroup share a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from kerngen.schedule.task import Options

MOST_LANES: Final = 1024
"""The most lanes of a workgroup that any adapter runs."""

MOST_TOTALS: Final = 64
"""The most totals of an invocation: more would not stay in registers."""

MatrixLayout: TypeAlias = Literal["rows", "nibbles", "bytes", "columns"]
"""How a matrix lies in memory.

- `rows`: contiguous along the reduction
- `nibbles`, `bytes`: the same, of integers of 4 or 8 bits that can be read by four words
- `columns`: contiguous along the result
"""

LAYOUTS: Final[tuple[MatrixLayout, ...]] = ("rows", "nibbles", "bytes", "columns")

LANES_OF: Final[Mapping[MatrixLayout, tuple[int, int]]] = {
    "rows": (128, 1),
    "nibbles": (32, 4),
    "bytes": (64, 4),
    "columns": (16, 16),
}
"""The default lanes of each layout: along the reduction, and across, with other columns.

Lanes that read four words have their part of the rows in workgroup memory, which the groups
across share.  On an H200, in shaders written by hand, a product with 16384 x 16384 integers,
of which a lane sums two columns, took 62 us in `i4`, 69 us in `u4` with zero points and 78 us
in `i8` with four words; 80, 104 and 86 us where a lane reads eight integers.
"""


@final
@dataclass(frozen=True, slots=True)
class GemvShape:
    """The shape of a product with a vector: the work of an invocation and of a workgroup.

    - `rows x columns`: the results that an invocation sums
    - `along`: the lanes that share the terms of a result
    - `across`: the lanes, or groups of lanes, that have other columns
    - `unroll`: the terms, or vectors of them, that a turn of the loop takes of each result,
      where the matrix is contiguous along the reduction
    - `split`: the parts that the terms are cut into for several workgroups, where the matrix
      is contiguous along the result; None: as many as suit the number of terms

    With `lanes(64, 4) columns(2)`, a workgroup of 256 lanes has 8 columns: each of 4 groups
    of 64 lanes sums two.
    """

    rows: int
    columns: int
    along: int
    across: int
    unroll: int
    split: int | None

    @property
    def lanes(self) -> int:
        """The number of lanes of a workgroup."""
        return self.along * self.across

    def faults(self) -> Iterator[str]:
        """Yield the reason why the numbers are not allowed, in the user's words, if so."""
        sizes = (self.along, self.across)
        if any(size & (size - 1) for size in sizes):
            yield f"lanes{sizes} are not powers of two"
        elif self.lanes > MOST_LANES:
            yield f"no adapter runs more than {MOST_LANES} lanes, as lanes{sizes} are"
        elif self.rows * self.columns > MOST_TOTALS:
            yield f"an invocation keeps at most {MOST_TOTALS} sums"


NOT_FOR: Final = {True: ("split",), False: ("columns", "unroll")}
"""Options that are refused where the matrix is contiguous along the reduction (True), or is
not (False)."""


def shape_of(options: Options, layout: MatrixLayout) -> GemvShape:
    """Return the shape of the workgroups that a schedule's options ask for.

    By default, a lane with up to two results takes two vectors of terms in a turn, so that it
    waits for memory half as often; four words are enough for one turn.
    """
    by_words = layout in {"nibbles", "bytes"}

    def one(name: str, default: int) -> int:
        return options.get(name, (default,))[0]

    rows, columns = one("rows", 1), one("columns", 2 if by_words else 1)
    along, across = options.get("lanes", LANES_OF[layout])
    unroll = one("unroll", 2 if rows * columns <= 2 and not by_words else 1)
    split = options["split"][0] if "split" in options else None
    return GemvShape(rows, columns, along, across, unroll, split)
