"""Default schedules of shallow products: of few terms, whose time is that of storing the result.

    20,000 x 3 by 3 x 501       points, projected
    3,001 x 12 by 12 x 3,001    features by features

A turn of other tiles has 16 to 64 terms, of which most would be zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.plan.size import all_of, compare
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import is_of_two_matrices, product_of, sides_of
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Options, Task

FEWEST_TERMS: Final = 8
MANY: Final = 2**18
"""Of fewer than 8 terms, 2^18 results or more in up to 64 columns are serial loops, without tiles."""

SHALLOWEST: Final = 8
SHALLOW: Final = 24
SHALLOW_ALONG_TERMS: Final = 15
NARROW: Final = 64
"""Shallow products have up to 8 terms, or up to 24, and more than 64 columns; up to 15 if the right
factor lies along the terms."""

SHALLOWEST_TILES: Final[Options] = {"tile": (8, 128, 4), "micro": (8, 4)}
SHALLOW_TILES: Final[Options] = {"tile": (16, 128, 8), "micro": (8, 4)}
"""Times on an H200, in us, beside those of a serial sum for each result, of which an invocation has
four, and of the fastest of `PRODUCT_TILES`:

| product | | 8 x 128 x 4 | 16 x 128 x 8 | serial | those |
| --- | --- | --- | --- | --- | --- |
| 20,000 x 3 by 501 | `nn` | 20 | 22 | 33 | |
| 4096 x 4 by 4096 | `nt` | 25 | 33 | 139 | |
| 100,000 x 3 by 65 | `nt` | 18 | 24 | 23 | |
| 100,000 x 3 by 33 | `nn` | 15 | | 13 | |
| 5000 x 2 by 5000 | `nn` | 35 | 37 | 33 | |
| 3001 x 7 by 3001 | `nn` | 22 | 21 | 43 | |
| 2048 x 8 by 2048 | `nn` | 9.8 | 9.3 | | 20 |
| 5000 x 8 by 999 | `nt` | 15 | 17 | 50 | 22 |
| 3001 x 9 by 3001 | `nn` | 24 | 24 | 49 | 34 |
| 2047 x 16 by 2049 | `nn` | 15 | 15 | 35 | 20 |
| 4096 x 12 by 4096 | `nt` | 45 | 35 | | 55 |
| 3001 x 15 by 3001 | `nt` | 30 | 30 | | 35 |
| 4096 x 16 by 4096 | `nt` | 68 | 41 | | 36 |
| 3001 x 24 by 3001 | `nn` | 33 | 29 | | 40 |
| 4095 x 24 by 4096 | `nt` | 96 | 54 | | 54 |
| 2048 x 32 by 2048 | `nn` | 18 | 14 | | 14 |
| 256 x 16 by 256 | `nn` | 3.7 | 3.3 | | 3.6 |
"""


def shallow_choices(task: Task, reason: str) -> Iterator[ScheduleChoice]:
    """Yield the schedules of a product of few terms: in flat tiles where there are many columns.

    The serial loops are for two matrices; of more, each is small as a rule.
    """
    found, _ = product_of(task)
    _, columns = map(domain_size, sides_of(task))
    terms, wide = domain_size(found.over), compare(">", columns, NARROW)
    along_terms = found.right_axis == found.last
    few = compare("<=", terms, SHALLOW_ALONG_TERMS if along_terms else SHALLOW)
    why = f"{reason}; there are few terms"
    shallowest = all_of(wide, compare("<=", terms, SHALLOWEST))
    yield ScheduleChoice("gemm", why, shallowest, SHALLOWEST_TILES)
    if is_of_two_matrices(task):
        many = compare(">=", domain_size(task.domain), MANY)
        fewest = all_of(compare("<", terms, FEWEST_TERMS), many)
        yield ScheduleChoice("generic", f"below {FEWEST_TERMS} terms", fewest)
    yield ScheduleChoice("gemm", why, all_of(wide, few), SHALLOW_TILES)
