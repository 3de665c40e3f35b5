"""Default schedules of shallow products: of few terms, whose time is that of storing the result.

    20,000 x 3 by 3 x 501       points, projected
    3,001 x 12 by 12 x 3,001    features by features

A turn of the tiles of large products has 16 to 64 terms, of which most would be zeros.
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
RESULTS_OF_SERIAL: Final = 2**18
"""Sums of fewer than 8 terms are serial loops, without tiles, from 2^18 results on, where flat tiles
are not for them: in up to 64 columns, and for triangles."""

TERMS_OF_SHALLOWEST: Final = 8
TERMS_OF_SHALLOW: Final = 24
TERMS_ALONG_RIGHT: Final = 15
COLUMNS_OF_SERIAL: Final = 64
"""Shallow products have more than 64 columns, and up to 8 terms, or up to 24; up to 15 if the right
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
    """Yield the schedules of a product of few terms: flat tiles where there are many columns."""
    found, _ = product_of(task)
    _, columns = map(domain_size, sides_of(task))
    terms, wide = domain_size(found.over), compare(">", columns, COLUMNS_OF_SERIAL)
    along_terms = found.right_axis == found.last
    most = TERMS_ALONG_RIGHT if along_terms else TERMS_OF_SHALLOW
    why = f"{reason}; there are few terms"
    shallowest = all_of(wide, compare("<=", terms, TERMS_OF_SHALLOWEST))
    yield ScheduleChoice("gemm", why, shallowest, SHALLOWEST_TILES)
    yield from serial_choices(task)
    shallow = all_of(wide, compare("<=", terms, most))
    yield ScheduleChoice("gemm", why, shallow, SHALLOW_TILES)


def serial_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the serial loops of a product of two matrices of very few terms.

    Of more matrices, each is small as a rule, and has schedules of its own.
    """
    if is_of_two_matrices(task):
        terms = domain_size(product_of(task)[0].over)
        many = compare(">=", domain_size(task.domain), RESULTS_OF_SERIAL)
        fewest = all_of(compare("<", terms, FEWEST_TERMS), many)
        yield ScheduleChoice("generic", f"below {FEWEST_TERMS} terms", fewest)
