"""Candidates of strategy `gemv`: lanes by how long and how many the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.nodes import Expr
from kerngen.schedule.choice import Choice, both, compare, size_of
from kerngen.schedule.gemv.rowwise import layout_of
from kerngen.schedule.task import Options, Task

LONG_NIBBLES: Final = 4096
NIBBLES_OF_LONG: Final[Options] = {"lanes": (64, 4)}
MANY_OF_NIBBLES: Final = 16384
NIBBLES_OF_MANY: Final[Options] = {"lanes": (16, 8), "columns": (4,)}
"""Rows of so many integers of 4 bits are work for 64 lanes, which take 2,048 of them in a
turn; many shorter ones for 16 lanes.  On an H200, 2,560 rows of 9,728 take 12 us so (16 with
32 lanes), 151,936 rows of 2,560 take 84 us (108), and 6,144 of those with 32 lanes 9 us."""


def gemv_choices(task: Task, reason: str, guard: Expr | None) -> Iterator[Choice]:
    """Yield the candidates of products with a vector; of nibbles, by the rows' sizes."""
    found, layout = layout_of(task)
    if layout == "nibbles":
        long = compare(size_of(found.over), ">=", LONG_NIBBLES)
        many = compare(found.column.extent, ">=", MANY_OF_NIBBLES)
        for which, options in ((long, NIBBLES_OF_LONG), (many, NIBBLES_OF_MANY)):
            where = which if guard is None else both(guard, which)
            yield Choice("gemv", reason, where, options)
    yield Choice("gemv", reason, guard)
