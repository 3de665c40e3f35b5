"""The options of `gemv` as numbers: how the lanes of a workgroup share a product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from kerngen.schedule.task import Options

MOST_LANES: Final = 1024
MOST_TOTALS: Final = 64
"""More totals than that no invocation keeps in registers."""

ROW_LANES: Final = 128
"""Along the reduction, where the matrix lies along it."""

SLICES: Final = 16
"""Along the reduction, where the matrix lies along the result; as many lie across."""


@final
@dataclass(frozen=True, slots=True)
class GemvShape:
    """How much of a product an invocation does, and with how many others.

    An invocation sums `rows` times `columns` results.  `along` lanes share the terms of
    each, and `across` lanes, or groups of lanes, have other columns.  Where the matrix
    lies along the reduction, a turn of the loop takes `unroll` terms of each result, or
    vectors of them; where it lies along the result, the terms are cut into `split` parts
    for several workgroups, by default into some that suit their number.
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


def shape_of(options: Options, *, along_rows: bool) -> GemvShape:
    """Return the shape for a schedule's options; the matrix lies `along_rows` or not.

    If a lane has few results, it takes several terms at once, so that it waits less
    often.
    """

    def one(name: str, default: int) -> int:
        return options.get(name, (default,))[0]

    rows, columns = one("rows", 1), one("columns", 1)
    lanes = (ROW_LANES, 1) if along_rows else (SLICES, SLICES)
    along, across = options.get("lanes", lanes)
    unroll = one("unroll", 2 if rows * columns <= 2 else 1)
    split = options["split"][0] if "split" in options else None
    return GemvShape(rows, columns, along, across, unroll, split)
