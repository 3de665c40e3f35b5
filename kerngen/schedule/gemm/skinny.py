"""Default schedules of tall-and-skinny products: one side of the result has few elements.

    tall    100,000 x 64 by 64 x 10     many rows, few columns
    wide    10 x 64 by 64 x 100,000     few rows, many columns

The tiles of other products would be empty, mostly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.plan.size import Guard, Size, all_of, any_of, compare
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Options, Task

SHORT: Final = 32
MANY: Final = 2**15
LONG: Final = 256
MOST_TERMS: Final = 512
"""A product is skinny with a side of up to 32, if the other has 32,768 or more, or if that of
several matrices has 256 or more, and 32,768 in all; of more than 512 terms, tiles share them..."""

SHORT_OF_SHALLOW: Final = 64
SHALLOW: Final = 32
MANY_RESULTS: Final = 2**18
"""... and with a side of up to 64, if there are up to 32 terms, and 2^18 results or more."""

FEW_TERMS: Final = 8
FEW_OF_NARROW: Final = 15
NARROWEST: Final = 16
"""Tiles of 8 terms are for tall products of up to 8 terms, or of up to 15 with up to 16 columns."""

TALL_OF_FEW_TERMS: Final[Options] = {"tile": (128, 16, 8), "micro": (4, 4)}
TALL: Final[Options] = {"tile": (128, 32, 16), "micro": (8, 4)}
WIDE: Final[Options] = {"tile": (32, 128, 16), "micro": (4, 8)}
"""Times on an H200, in us, beside those of tiles of 64 x 64 x 8 for up to 32 terms, and of the
fastest of `PRODUCT_TILES` for more:

| product | of few terms | others | those |
| --- | --- | --- | --- |
| 100,000 x 8 by 16, `nn` | 12 | 21 | 20 |
| 100,000 x 16 by 16, `nt` | 22 | 23 | 37 |
| 100,000 x 64 by 10, `tn` | 74 | 98 | 135 |
| 100,000 x 32 by 32, `nt` | 56 | 35 | 61 |
| 50,000 x 256 by 10, `nn` | 49 | 31 | 36 |
| 32 x 32 by 100,000, `nt` | 81 | 51 | 90 |

`shallow.py` has the tiles of wide products of few terms.
"""


def skinny_choices(task: Task, reason: str) -> Iterator[ScheduleChoice]:
    """Yield the schedules of a product of matrices whose rows or columns are few."""
    found, _ = product_of(task)
    rows, columns = map(domain_size, sides_of(task))
    terms, results = domain_size(found.over), domain_size(task.domain)
    tall = _is_skinny(rows, columns, terms, results)
    wide = _is_skinny(columns, rows, terms, results)
    narrowest = compare("<=", columns, NARROWEST)
    few = any_of(
        compare("<=", terms, FEW_TERMS),
        all_of(compare("<=", terms, FEW_OF_NARROW), narrowest),
    )
    of_columns = f"{reason}; there are few columns"
    of_few_terms = f"{of_columns}, and few terms"
    yield ScheduleChoice("gemm", of_few_terms, all_of(tall, few), TALL_OF_FEW_TERMS)
    yield ScheduleChoice("gemm", of_columns, tall, TALL)
    yield ScheduleChoice("gemm", f"{reason}; there are few rows", wide, WIDE)


def _is_skinny(long: Size, short: Size, terms: Size, results: Size) -> Guard:
    of_any = all_of(
        compare("<=", short, SHORT),
        compare("<=", terms, MOST_TERMS),
        compare(">=", results, short * MANY),
    )
    of_few = all_of(
        compare("<=", short, SHORT_OF_SHALLOW),
        compare("<=", terms, SHALLOW),
        compare(">=", results, MANY_RESULTS),
    )
    return all_of(compare(">=", long, LONG), any_of(of_any, of_few))
