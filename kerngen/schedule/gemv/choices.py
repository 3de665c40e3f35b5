"""Default schedules of products with a vector, with few rows, or with few results.

Those are schedules of `gemv`, or of `rows` and `reduce` where a workgroup of `gemv` would have
too little to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    Guard,
    all_of,
    any_of,
    compare,
    divides,
    remainder,
)
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import Contraction, memory_axis
from kerngen.schedule.gemv.shape import MatrixLayout
from kerngen.schedule.gemv.strategy import layout_of
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.orientation import is_columnwise
from kerngen.schedule.rows.strategy import fits_rows
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Options, Task

SHORT_OF_GEMV: Final = 512
FEW_OF_GEMV: Final = 512
"""A product of a matrix and a vector is for `rows` where the matrix has up to 512 rows, or they
have up to 512 elements.

On an H200, 262,144 rows of 64 elements take 20 us, by `gemv`, of which a workgroup has one, 217;
32,768 of 512 19 and 31, 21,845 of 768 22 and 22.  Of few rows, `rows` has more lanes for each,
or several workgroups: 128 rows of 65,536 take 29 us and 90, 512 of 4,096 both 11.
"""

FEW_COLUMNS: Final = 16
FEW_ODD_COLUMNS: Final = 64
"""A product along the result is for `reduce` with fewer columns than 16, or than 64 if they are no
multiple of four: a workgroup of `gemv` has 64, of which each lane has four if sizes allow.

On an H200, 699,050 rows of 12 columns take 42 us, by `gemv` 59; 493,447 of 17 58 and 102.
"""

ROWS_OF_GEMV: Final = 8
COLUMNS_OF_FEW_ROWS: Final = 64
TERMS_OF_FEW_ROWS: Final = 256
RESULTS_OF_ROWS: Final = 1024
RESULTS_OF_ONE_ROW: Final = 4096
RESULTS_OF_GEMV: Final = 16384
TERMS_ALONG_ROWS: Final = 64
MOST_TERMS_OF_FEW_RESULTS: Final = 6144
MOST_PRODUCTS_OF_ODD: Final = 2**22
RESULTS_OF_ROWS_AT_ONCE: Final = 2**16
MOST_PRODUCTS_AT_ONCE: Final = 3 << 24
FITTING: Final = 2**22
AT_ONCE: Final[Mapping[MatrixLayout, Options]] = {
    "rows": {"rows": (4,), "columns": (4,), "lanes": (64, 4)},
    "columns": {"rows": (4,)},
}
"""When products of two matrices are not in tiles, of which there would be too few for a device.

- Up to 8 rows: four at once, by `gemv`.  On an H200, 4 rows by a matrix of 4096 x 4096 take 28 us
  if it is transposed, in tiles 80; 60 and 162 if it is not.
- Up to 16,384 results, of 64 terms or more, if the matrix is transposed, and up to 50 million
  products of two numbers: the same.  128 x 1024 by 1024 x 128 takes 5.4 us (13.5), 128 x 64 by 64 x
  128 7.1 (8.8).
- Up to 65,536 results of so many terms and products if it is not: the same.  77 x 768 by 768 x 768
  takes 8.6 us (11.3), 50 x 512 by 512 x 512 5.5 (7.2), 283 x 285 by 285 x 152 5.4 (8.7), 256 x 256
  by 256 x 256 4.9 (6.7).
- If rows of the matrix are no whole vectors, up to 16,384 results and 4 million products: 200 x 1000
  by 1000 x 70 takes 17.4 us (8.7), 86 x 3993 by a transposed 24 x 3993 17.2 (8.7), 56 x 2152 by
  2152 x 69, one row at once, 12.5 (8.1).
- Up to 4,096 results of 256 terms or more, if it is not: one row at once.  24 x 1816 by 1816 x 96
  takes 7.5 us, with four 9.6.
- Up to 1,024 results, if it is: `rows`, a row of terms for each.  That takes 12, 21 and 57 us.

But for few rows, they read both factors many times, which is for factors of up to 4,194,304
elements together, that stay in a cache, and for up to 6,144 terms: 64 x 16,384 by 16,384 x 64 takes
30 us (13), and 128 x 10,000 by 10,000 x 128 24 (19).
"""

LONG_NIBBLES: Final = 4096
MANY_LONG_OF_NIBBLES: Final = 8192
NIBBLES_OF_MANY_LONG: Final[Options] = {"lanes": (32, 4), "columns": (4,)}
NIBBLES_OF_LONG: Final[Options] = {"lanes": (64, 4)}
MANY_OF_NIBBLES: Final = 16384
NIBBLES_OF_MANY: Final[Options] = {"lanes": (16, 8), "columns": (4,)}
"""The lanes for matrices of integers of 4 bits, by the rows of the matrix in memory.

- from 8,192 rows of 4,096 on: 32 lanes, which use what they read of x for four rows
- other rows of 4,096 on: 64 lanes, which take 2,048 integers in a turn
- from 16,384 shorter rows on: 16 lanes

On an H200, 2,560 rows of 9,728 take 9.4 us with 64 lanes (10.3 with 32), 16,384 of 16,384 with
zero points 62 us with 32 (72 with 64), 11,008 of 4,096 12 us (13), 151,936 of 2,560 84 us with
16 (108 with 32), and 6,144 of those 9 us with 32.
"""

MANY_OF_BYTES: Final = 6144
BYTES_OF_MANY: Final[Options] = {"lanes": (32, 4), "columns": (4,)}
"""From 6,144 rows of bytes on, 32 lanes share a row.

On an H200, 151,936 rows of 2,560 take 103 us so (133 with 64 lanes), 6,144 of them 7.3 us
(8.1), but 2,560 rows of 9,728 15 us (12).
"""


def suits_rows(task: Task) -> bool:
    """Whether a product is one for `rows`: the matrix and most reads lie along the terms."""
    _, layout = layout_of(task)
    along_terms = layout == "rows" and not is_columnwise(task)
    return along_terms and not fits_rows(task.at_most(1))


def vector_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the schedules of a product of a matrix and a vector, best first.

    A workgroup of `gemv` has one row of the matrix, or 64 columns.  It would be idle, mostly,
    with a short row, or with few columns; and there would be too few with few rows.
    """
    found, layout = layout_of(task)
    if layout == "columns" and is_columnwise(task):
        count = extent_size(found.column.extent)
        odd = compare("!=", remainder(count, LANES), 0)
        few = any_of(
            compare("<", count, FEW_COLUMNS),
            all_of(odd, compare("<", count, FEW_ODD_COLUMNS)),
        )
        yield ScheduleChoice("reduce", "there are few columns", few)
    elif suits_rows(task):
        short_or_few = any_of(
            compare("<=", domain_size(found.over), SHORT_OF_GEMV),
            compare("<=", domain_size(task.domain), FEW_OF_GEMV),
        )
        yield ScheduleChoice("rows", "rows are short or few", short_or_few)
    yield from _of_gemv(task, "a product of a matrix and a vector")


def few_result_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the schedules of products of one row, of few rows, or with few results."""
    found, layout = layout_of(task)
    assert found.row is not None, found
    terms, results = domain_size(found.over), domain_size(task.domain)
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    of_matrices = len(task.domain) == len((found.row, found.column))
    cached, guard = _fits_cache(found), compare("==", rows, 1)
    if suits_rows(task):
        # Where both factors lie along the terms, one column is like one row.
        if cached != NEVER:
            guard = any_of(guard, compare("==", columns, 1))
        short = all_of(compare("<=", terms, SHORT_OF_GEMV), guard)
        few = all_of(compare("<=", results, RESULTS_OF_ROWS), cached)
        yield ScheduleChoice("rows", "terms are few, or results", any_of(few, short))
    elif layout == "columns" and of_matrices:
        long = compare(">=", terms, TERMS_OF_FEW_ROWS)
        not_too_long = compare("<=", terms, MOST_TERMS_OF_FEW_RESULTS)
        few = compare("<=", results, RESULTS_OF_ONE_ROW)
        light = compare("<=", results * terms, MOST_PRODUCTS_OF_ODD)
        worth = any_of(divides(LANES, columns), light)
        guard = any_of(guard, all_of(long, not_too_long, few, worth, cached))
    reason = "with one row, or few results, no tile is worth its copies"
    yield from _of_gemv(task, reason, guard)
    if of_matrices and layout in AT_ONCE:
        yield _of_rows_at_once(found, layout, cached)


def _fits_cache(found: Contraction) -> Guard:
    """Return the guard that both factors fit a cache, so that it is cheap to read them again.

    It never holds where the left factor does not lie along the terms.
    """
    assert found.row is not None, found
    if memory_axis(found.left, found.last, found.row) != found.last:
        return NEVER
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    return compare("<=", domain_size(found.over) * (rows + columns), FITTING)


def _of_rows_at_once(
    found: Contraction, layout: MatrixLayout, cached: Guard
) -> ScheduleChoice:
    """Return `gemv` with four rows at once, for few rows, or for few results.

    `cached` is the guard that both factors fit a cache.
    """
    assert found.row is not None, found
    terms = domain_size(found.over)
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    few_rows = all_of(
        compare("<=", rows, ROWS_OF_GEMV),
        compare(">=", columns, COLUMNS_OF_FEW_ROWS),
        compare(">=", terms, TERMS_OF_FEW_ROWS),
    )
    # Along which a row of the matrix lies in memory, and how many results are few.
    along, most = {
        "rows": (terms, RESULTS_OF_GEMV),
        "columns": (columns, RESULTS_OF_ROWS_AT_ONCE),
    }[layout]
    results = rows * columns
    whole = all_of(
        divides(LANES, along),
        compare("<=", results, most),
        compare("<=", results * terms, MOST_PRODUCTS_AT_ONCE),
    )
    odd = all_of(
        compare("<=", results, RESULTS_OF_GEMV),
        compare("<=", results * terms, MOST_PRODUCTS_OF_ODD),
    )
    few_results = all_of(
        compare(">=", terms, TERMS_ALONG_ROWS),
        compare("<=", terms, MOST_TERMS_OF_FEW_RESULTS),
        any_of(whole, odd),
        cached,
    )
    reason = "there are few rows or results: four rows at once"
    guard = any_of(few_rows, few_results)
    return ScheduleChoice("gemv", reason, guard, AT_ONCE[layout])


def _of_gemv(
    task: Task, reason: str, guard: Guard = ALWAYS
) -> Iterator[ScheduleChoice]:
    """Yield `gemv` by itself, for calls where `guard` holds.

    Matrices of narrow integers that are read by words have several schedules, by their sizes.
    """
    found, layout = layout_of(task)
    for which, options in _of_words(found, layout):
        yield ScheduleChoice("gemv", reason, all_of(guard, which), options)
    yield ScheduleChoice("gemv", reason, guard)


def _of_words(
    found: Contraction, layout: MatrixLayout
) -> Iterator[tuple[Guard, Options]]:
    """Yield the shapes for long and for many rows of narrow integers, with conditions."""
    count = extent_size(found.column.extent)
    if layout == "nibbles":
        is_long = compare(">=", domain_size(found.over), LONG_NIBBLES)
        many = compare(">=", count, MANY_LONG_OF_NIBBLES)
        yield all_of(is_long, many), NIBBLES_OF_MANY_LONG
        yield is_long, NIBBLES_OF_LONG
        yield compare(">=", count, MANY_OF_NIBBLES), NIBBLES_OF_MANY
    elif layout == "bytes":
        yield compare(">=", count, MANY_OF_BYTES), BYTES_OF_MANY
