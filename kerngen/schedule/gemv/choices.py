"""Candidates of strategy `gemv`: lanes by how long and how many the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.nodes import Expr
from kerngen.schedule.choice import Choice, both, compare, size_of
from kerngen.schedule.contraction import Contraction
from kerngen.schedule.gemv.rowwise import layout_of
from kerngen.schedule.gemv.shape import MatrixLayout
from kerngen.schedule.task import Options, Task

LONG_NIBBLES: Final = 4096
MANY_LONG_OF_NIBBLES: Final = 8192
NIBBLES_OF_MANY_LONG: Final[Options] = {"lanes": (32, 4), "columns": (4,)}
NIBBLES_OF_LONG: Final[Options] = {"lanes": (64, 4)}
MANY_OF_NIBBLES: Final = 16384
NIBBLES_OF_MANY: Final[Options] = {"lanes": (16, 8), "columns": (4,)}
"""Rows of so many integers of 4 bits are work for 64 lanes, which take 2,048 of them in a
turn; many of them for 32, which take what they read of x for four rows, and many shorter
ones for 16.  On an H200, 2,560 rows of 9,728 take 9.4 us with 64 lanes (10.3 with 32),
16,384 of 16,384 with zero points 62 us with 32 (72 with 64), 11,008 of 4,096 12 us (13),
151,936 of 2,560 84 us with 16 (108 with 32), and 6,144 of those 9 us with 32."""

MANY_OF_BYTES: Final = 6144
BYTES_OF_MANY: Final[Options] = {"lanes": (32, 4), "columns": (4,)}
"""Many rows of bytes are work for 32 lanes: on an H200, 151,936 rows of 2,560 take 103 us so
(133 with 64 lanes), 6,144 of them 7.3 us (8.1), but 2,560 rows of 9,728 15 us (12)."""


def gemv_choices(task: Task, reason: str, guard: Expr | None) -> Iterator[Choice]:
    """Yield the candidates of products with a vector; of words, by the rows' sizes."""
    found, layout = layout_of(task)
    for which, options in _of_words(found, layout):
        where = which if guard is None else both(guard, which)
        yield Choice("gemv", reason, where, options)
    yield Choice("gemv", reason, guard)


def _of_words(
    found: Contraction, layout: MatrixLayout
) -> Iterator[tuple[Expr, Options]]:
    """Yield the shapes for long and for many rows of narrow integers, with conditions."""
    count = found.column.extent
    if layout == "nibbles":
        is_long = compare(size_of(found.over), ">=", LONG_NIBBLES)
        many = compare(count, ">=", MANY_LONG_OF_NIBBLES)
        yield both(is_long, many), NIBBLES_OF_MANY_LONG
        yield is_long, NIBBLES_OF_LONG
        yield compare(count, ">=", MANY_OF_NIBBLES), NIBBLES_OF_MANY
    elif layout == "bytes":
        yield compare(count, ">=", MANY_OF_BYTES), BYTES_OF_MANY
