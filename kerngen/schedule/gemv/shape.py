"""The options of `gemv` as numbers: how the lanes of a workgroup share a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from kerngen.schedule.task import Options

MOST_LANES: Final = 1024
MOST_TOTALS: Final = 64
"""More totals than that no invocation keeps in registers."""

MatrixLayout: TypeAlias = Literal["rows", "nibbles", "bytes", "columns"]
"""How a matrix lies in memory: along the reduction, of which `nibbles` and `bytes` are
narrow integers that can be read by four words; or along the result."""

LAYOUTS: Final[tuple[MatrixLayout, ...]] = ("rows", "nibbles", "bytes", "columns")

LANES_OF: Final[Mapping[MatrixLayout, tuple[int, int]]] = {
    "rows": (128, 1),
    "nibbles": (32, 4),
    "bytes": (64, 4),
    "columns": (16, 16),
}
"""Lanes along the reduction, and across.  Those that read four words find their part of
the rows in workgroup memory, and groups across share it.  On an H200, a product with
16384 x 16384 integers, of which a lane sums two columns, took 62 us in `i4`, 69 us in
`u4` with zero points and 78 us in `i8` so, in shaders by hand; 80, 104 and 86 us where a
lane reads eight."""


@final
@dataclass(frozen=True, slots=True)
class GemvShape:
    """The shape of a product with a vector: the work of an invocation and of a workgroup.

    - `rows x columns`: the results that an invocation sums
    - `along`: the lanes that share the terms of a result
    - `across`: the lanes, or groups of lanes, that have other columns
    - `unroll`: the terms, or vectors of them, that a turn of the loop takes of each result,
      where the matrix lies along the reduction
    - `split`: the parts that the terms are cut into for several workgroups, where it lies
      along the result; by default as many as suit their number
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
        """Yield the first fault of the numbers, in the user's words, if there is one."""
        sizes = (self.along, self.across)
        if any(size & (size - 1) for size in sizes):
            yield f"lanes{sizes} are not powers of two"
        elif self.lanes > MOST_LANES:
            yield f"no adapter runs more than {MOST_LANES} lanes, as lanes{sizes} are"
        elif self.rows * self.columns > MOST_TOTALS:
            yield f"an invocation keeps at most {MOST_TOTALS} sums"


NOT_FOR: Final = {True: ("split",), False: ("columns", "unroll")}
"""Options without a meaning where the matrix lies along the reduction, or does not."""


def shape_of(options: Options, layout: MatrixLayout) -> GemvShape:
    """Return the shape of the workgroups that a schedule's options ask for.

    A lane with few results takes several terms at once, so that it waits less often;
    four words are several.
    """
    by_words = layout in {"nibbles", "bytes"}

    def one(name: str, default: int) -> int:
        return options.get(name, (default,))[0]

    rows, columns = one("rows", 1), one("columns", 2 if by_words else 1)
    along, across = options.get("lanes", LANES_OF[layout])
    unroll = one("unroll", 2 if rows * columns <= 2 and not by_words else 1)
    split = options["split"][0] if "split" in options else None
    return GemvShape(rows, columns, along, across, unroll, split)
