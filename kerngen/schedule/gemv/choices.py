"""Default schedules of products with a vector, with few rows, or with few results.

Those are schedules of `gemv`, or of `rows` and `reduce` where a workgroup of `gemv` would have
too little to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    Guard,
    add,
    all_of,
    any_of,
    ceil_div,
    compare,
    divides,
    quotient,
    remainder,
    select,
)
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import Contraction, is_of_two_matrices, memory_axis
from kerngen.schedule.gemv.shape import MatrixLayout
from kerngen.schedule.gemv.strategy import layout_of, statistic_of
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
PRODUCTS_OF_ONE_ROW: Final = 2**23
TERMS_ALONG_ROWS: Final = 64
LONG: Final = 6144
RESULTS_OF_ODD: Final = 16384
MOST_PRODUCTS_OF_ODD: Final = 2**22
COLUMNS_OF_BLOCK: Final = 64
FITTING: Final = 2**22


@final
@dataclass(frozen=True)
class RowsAtOnce:
    """A schedule of `gemv`, for more than `above` results and up to `results`.

    Each is a sum of up to `terms` terms, and of one more for every `results_of_further` results
    there are; all of them together of up to `products`.
    """

    options: Options
    above: int
    results: int
    terms: int
    products: int
    results_of_further: int | None = None


ROWS_BY_ROWS: Final[Mapping[int, Options]] = {
    4: {"rows": (4,), "columns": (4,), "lanes": (64, 4)},
    8: {"rows": (8,), "columns": (8,), "lanes": (32, 4)},
}
TERMS_OF_STATISTIC: Final = 64
RESULTS_OF_SHORT_STATISTIC: Final = 8192
STATISTIC_OF_ONE_ROW: Final[Options] = {"columns": (3,), "unroll": (1,)}
"""The schedule of one row with a statistic, such as of a norm, together with its product.

A lane has four sums: of three columns, and the row's own.  Each workgroup computes the statistic
again, beside reading the matrix.  On an H200, in us:

| x | w | two dispatches | one, columns(3) | one, columns(1) |
| --- | --- | --- | --- | --- |
| 1 x 64 | 8000 x 64, f32 | 5.8 | 5.1 | |
| 1 x 256 | 4096 x 256, f32 | 6.4 | 4.3 | |
| 1 x 600 | 1100 x 600, f32 | 6.3 | 4.2 | 4.3 |
| 1 x 1024 | 3072 x 1024, f32 | 8.3 | 6.2 | 6.8 |
| 1 x 4096 | 4096 x 4096, f32 | 21.6 | 18.2 | 19.3 |
| 1 x 2560 | 151,936 x 2560, f16 | 205 | 175 | 226 |
| 1 x 256 | 512 x 256, i8 | 5.0 | | 3.1 |
| 1 x 4096 | 512 x 4096, i8 | 7.1 | | 6.0 |

With fewer terms than 64, or up to 512 and more than 8,192 results, most lanes would be idle.
Two to eight rows are joined in more rounds: 8 x 1024 by 4096 x 1024 takes 8.9 (12.2), but 4 x
4096 by 4096 x 4096 28.7 (22.8), so these are for matrices of up to `FITTING` elements.
"""

MOST_RESULTS_OF_TERM: Final = 512
"""With more results for each term, tiles are faster: the table below has 320 x 72 by 72 x 320."""

AT_ONCE: Final[Mapping[MatrixLayout, tuple[RowsAtOnce, ...]]] = {
    "rows": (
        RowsAtOnce(ROWS_BY_ROWS[4], 0, 2**14, LONG, 3 << 24),
        RowsAtOnce(ROWS_BY_ROWS[8], 2**14, 27 << 12, 2048, 2**26),
    ),
    "columns": (
        RowsAtOnce({"rows": (4,)}, 0, 2**16, 512, 2**26, results_of_further=192),
        RowsAtOnce({"rows": (8,)}, 2**16, 11 << 14, 0, 2**27, results_of_further=200),
    ),
}
"""Schedules of products of two matrices with several rows at once, by how the right one lies.

Tiles would be too few for a device.  Times on an H200, in us, beside those of tiles of 32 x 32 x 32,
where no cache has the factors; `nt` is a transposed right matrix, "rows", and `tn` a transposed
left one beside "columns".  The limits leave most of those to tiles that these are faster for, but
not 320 x 640 by 640 x 320, as 300 x 700 by 700 x 300 gains more.  Eight rows at once in "columns"
begin with fewer terms than four end with, as more terms take them longer:

| product | | rows at once | tiles |
| --- | --- | --- | --- |
| 320 x 320 by 320 x 320 | `nt` | 8: 9.3, 4: 12.0 | 10.9 |
| 300 x 700 by 700 x 300 | `nt` | 8: 10.8, 4: 14.2 | 13.5 |
| 320 x 640 by 640 x 320 | `nt` | 8: 12.7, 4: 15.2 | 11.7 |
| 320 x 72 by 72 x 320 | `nt` | 8: 5.5 | 4.2 |
| 50 x 512 by 512 x 512 | `nn` | 4: 7.2, 8: 10.7 | 7.7 |
| 77 x 768 by 768 x 768 | `nn` | 4: 9.9, 8: 14.7 | 11.3 |
| 77 x 768, of which no four rows are a vector | `tn` | 4: 10.6, 8: 15.9 | 13.0 |
| 192 x 512 by 512 x 192 | `nn` | 4: 7.2, 8: 11.0 | 8.1 |
| 192 x 768 by 768 x 192 | `tn` | 4: 9.4, 8: 13.9 | 8.7 |
| 128 x 768 by 768 x 128 | `nn` | 4: 9.5, 8: 15.1 | 7.5 |
| 256 x 1024 by 1024 x 256 | `nn` | 4: 12.1, 8: 18.8 | 11.4 |
| 320 x 320 by 320 x 320 | `nn` | 8: 8.2, 4: 8.0 | 10.6 |
| 400 x 400 by 400 x 400 | `tn` | 8: 10.1, 4: 12.3 | 13.3 |

When products are not in tiles:

- Up to 8 rows: the first of these.  4 rows by a matrix of 4096 x 4096 take 28 us if it is
  transposed, in tiles 80; 60 and 162 if it is not.
- Few results of 64 terms or more, and up to 512 for each term, if rows of the matrix are whole
  vectors: within the limits of each schedule.  Eight rows at once are for fewer terms: 128 x 4096
  by a transposed 128 x 4096 takes 18.7 us so, in tiles 11.7.
- If rows of the matrix are no whole vectors, up to 16,384 results and 4 million products: 296 x 233
  by a transposed 48 x 233 takes 3.9 us (7.9), 86 x 3993 by a transposed 24 x 3993 17.2 (8.7); 30 x
  300 by 300 x 30 5.8 (9.0), 168 x 592 by 592 x 34 11.2 (7.8).
- In "columns" the columns count as whole blocks of 64, of which a workgroup computes all: 800 x 800
  by 800 x 68 takes 14.0 us with four rows, 11.8 with eight (11.5), 2000 x 256 by 256 x 32 7.2 and 5.9
  (6.7), 5000 x 300 by 300 x 32 13.7 and 13.0 (9.5).
- Up to 4,096 results of 256 terms or more, and 8 million products, if it is not transposed: one row
  at once.  24 x 1816 by 1816 x 96 takes 7.5 us, with four 9.6.
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


def statistic_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the schedules of a statistic of rows with the product behind it, for few rows."""
    pair = statistic_of(task)
    if isinstance(pair, str):
        return
    found, layout = layout_of(pair.product)
    terms, results = domain_size(found.over), domain_size(pair.product.domain)
    reason = "a statistic of few rows, and the product that reads it"
    one: Guard = ALWAYS
    if found.row is not None:
        one = compare("==", extent_size(found.row.extent), 1)
    if layout != "rows":
        for which, options in _of_words(found, layout):
            guard = all_of(one, which)
            yield ScheduleChoice("gemv", reason, guard, options, together=2)
        yield ScheduleChoice("gemv", reason, one, together=2)
        return
    long = compare(">", terms, SHORT_OF_GEMV)
    short = compare(">=", terms, TERMS_OF_STATISTIC)
    light = all_of(short, compare("<=", results, RESULTS_OF_SHORT_STATISTIC))
    enough = all_of(any_of(long, light), compare(">", results, FEW_OF_GEMV))
    guard = all_of(one, enough)
    yield ScheduleChoice("gemv", reason, guard, STATISTIC_OF_ONE_ROW, together=2)
    if found.row is not None:
        columns = extent_size(found.column.extent)
        small = compare("<=", terms * columns, FITTING)
        guard = all_of(_has_few_rows(found), enough, small)
        yield ScheduleChoice("gemv", reason, guard, ROWS_BY_ROWS[4], together=2)


def few_result_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the schedules of products of one row, of few rows, or with few results."""
    found, layout = layout_of(task)
    assert found.row is not None, found
    terms, results = domain_size(found.over), domain_size(task.domain)
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    of_matrices = is_of_two_matrices(task)
    along_terms = _left_axis(found) == found.last
    cached, guard = _fits_cache(found), compare("==", rows, 1)
    if suits_rows(task):
        # Where both factors lie along the terms, one column is like one row.
        if along_terms:
            guard = any_of(guard, compare("==", columns, 1))
        few = all_of(compare("<=", results, RESULTS_OF_ROWS), cached)
        short = all_of(compare("<=", terms, SHORT_OF_GEMV), guard)
        few_or_short = any_of(few, short) if along_terms else short
        yield ScheduleChoice("rows", "terms are few, or results", few_or_short)
    elif layout == "columns" and of_matrices and along_terms:
        long = compare(">=", terms, TERMS_OF_FEW_ROWS)
        not_too_long = compare("<=", terms, LONG)
        few = compare("<=", results, RESULTS_OF_ONE_ROW)
        whole = divides(LANES, columns)
        most = select(whole, PRODUCTS_OF_ONE_ROW, MOST_PRODUCTS_OF_ODD)
        light = compare("<=", results * terms, most)
        guard = any_of(guard, all_of(long, not_too_long, few, light, cached))
    reason = "with one row, or few results, no tile is worth its copies"
    yield from _of_gemv(task, reason, guard)
    if of_matrices and layout in AT_ONCE:
        yield from _of_rows_at_once(found, layout)


def _of_rows_at_once(
    found: Contraction, layout: MatrixLayout
) -> Iterator[ScheduleChoice]:
    """Yield `gemv` with several rows at once, for few rows, or for few results."""
    reason = "there are few rows or results: several rows at once"
    for number, way in enumerate(AT_ONCE[layout]):
        few = NEVER if number else _has_few_rows(found)
        guard = any_of(few, _has_few_results(found, layout, way))
        yield ScheduleChoice("gemv", reason, guard, way.options)


def _left_axis(found: Contraction) -> Index | None:
    """Return the index that the left factor of a product of matrices lies along in memory."""
    assert found.row is not None, found
    return memory_axis(found.left, found.last, found.row)


def _fits_cache(found: Contraction) -> Guard:
    """Return the guard that both factors fit a cache, so that it is cheap to read them again."""
    assert found.row is not None, found
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    return compare("<=", domain_size(found.over) * (rows + columns), FITTING)


def _has_few_rows(found: Contraction) -> Guard:
    """Return the guard that a product has so few rows that four at once read the matrix best."""
    assert found.row is not None, found
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    return all_of(
        compare("<=", rows, ROWS_OF_GEMV),
        compare(">=", columns, COLUMNS_OF_FEW_ROWS),
        compare(">=", domain_size(found.over), TERMS_OF_FEW_ROWS),
    )


def _has_few_results(
    found: Contraction, layout: MatrixLayout, way: RowsAtOnce
) -> Guard:
    """Return the guard that a product has so few results that several rows at once are faster.

    It never holds where the right factor lies along the terms and the left one does not, nor
    where the left one lies along neither the terms nor its rows.
    """
    assert found.row is not None, found
    by_terms = _left_axis(found) == found.last
    if not by_terms and (layout != "columns" or _left_axis(found) != found.row):
        return NEVER
    terms = domain_size(found.over)
    rows, columns = (extent_size(x.extent) for x in (found.row, found.column))
    # Where a row of the matrix lies along the columns, a workgroup has a block of them.
    along, results = terms, rows * columns
    if layout == "columns":
        blocks = ceil_div(columns, COLUMNS_OF_BLOCK)
        along, results = columns, rows * blocks * COLUMNS_OF_BLOCK
    by = way.results_of_further
    further = quotient(results, by) if by else 0
    whole = all_of(
        divides(LANES, along),
        compare(">", results, way.above) if way.above else ALWAYS,
        compare("<=", results, way.results),
        compare("<=", results * terms, way.products),
    )
    odd = all_of(
        compare("<=", results, RESULTS_OF_ODD),
        compare("<=", results * terms, MOST_PRODUCTS_OF_ODD),
    )
    return all_of(
        compare(">=", terms, TERMS_ALONG_ROWS),
        compare("<=", terms, add(further, way.terms)),
        compare("<=", results, terms * MOST_RESULTS_OF_TERM),
        whole if way.above else any_of(whole, odd),
        _fits_cache(found),
    )


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
