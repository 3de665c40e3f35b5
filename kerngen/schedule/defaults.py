"""Choose the default schedules of a stage, each with the reason for the choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, final

from kerngen.ir.analysis.conditions import is_conditional
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.nodes import (
    Binary,
    BinaryOp,
    Constant,
    DimValue,
    Expr,
    Extent,
    Index,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.flash.attention_sums import AttentionSums
from kerngen.schedule.flash.key_bounds import mask_of
from kerngen.schedule.flash.strategy import flash_of, suits_flash
from kerngen.schedule.gemm.strategy import fits_gemm, row_of
from kerngen.schedule.gemm.tiling import (
    LARGE_OPTIONS,
    MANY_WINDOWS_OPTIONS,
    SHALLOW_OPTIONS,
    SMALL,
    SMALL_OPTIONS,
    WINDOW_OPTIONS,
)
from kerngen.schedule.gemv.rowwise import layout_of
from kerngen.schedule.gemv.strategy import fits_gemv
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.lowering.ranges import is_window
from kerngen.schedule.orientation import is_columnwise, is_contiguous_at_all
from kerngen.schedule.per_element import shares_reads
from kerngen.schedule.ragged.shape import RaggedRows, ragged_of
from kerngen.schedule.ragged.strategy import LANES_BY_MEAN
from kerngen.schedule.recurrence.fold import fits_fold
from kerngen.schedule.recurrence.in_steps import fits_steps
from kerngen.schedule.recurrence.strategy import fits_loop
from kerngen.schedule.recurrence.turn import loop_of
from kerngen.schedule.rows.run import Part, Run, run_of
from kerngen.schedule.rows.strategy import fits_rows, values_held
from kerngen.schedule.scalar_only import is_scalar_only
from kerngen.schedule.scan.affine_form import affine_step
from kerngen.schedule.scan.strategy import fits_scan, suits_scan
from kerngen.schedule.scatter.shape import scatter_of
from kerngen.schedule.scatter.strategy import by_lists, fits_scatter
from kerngen.schedule.sort.strategy import fits_sort, sort_run
from kerngen.schedule.task import Options, Task

SHORT_ROW: Final = 16
"""Below this many terms, lanes that share a row are mostly idle."""

SHORT_COLUMN: Final = 32
"""Below this many terms, so are the slices of a column."""

MANY_RESULTS: Final = 16384
"""So many results keep a device busy with one invocation each."""

NARROW: Final = 64
SMALL_PRODUCT: Final = 512 * 512
"""The sides, or the elements, up to which a product has small tiles."""

MANY_NEIGHBOURS: Final = 2**18
"""So many results keep a device busy with a fourth of the invocations, and in workgroups
of many.  On an H200, 4096 x 4096 sums of 3 terms take 36 us four at a time; one at a time
65 us in workgroups of 256, and 160 us in those of 64."""

FEW_ROWS: Final = 64
LONG_ROW: Final = 65536
"""Fewer rows than that, of more elements, are work for several workgroups each."""

MANY_WINDOWED: Final = 2**20
LIGHT_WINDOW: Final = 640
"""This many results of a convolution, of up to this many terms, keep a device busy without
shares of tiles, which would cost more than they gain."""

LONG_SERIES: Final = 512
FEW_SERIES: Final = 1024
"""Rows of this many elements are work for the lanes of a workgroup; where neighbours are
those of other rows, only of fewer rows than that."""

MANY_TO_ORDER: Final = 4096
"""From this many elements on, twelve dispatches that sort them are faster than to compare
each with each other one."""

BOUNDED_TILES: Final[tuple[tuple[int | None, Options], ...]] = (
    (3 << 19, {"tile": (32, 32, 32), "micro": (4, 4)}),
    (1 << 23, {"tile": (64, 64, 16), "micro": (8, 8)}),
    (None, {"tile": (64, 128, 16), "micro": (8, 8)}),
)
"""The tiles of products under a condition, of up to so many results.

Tiles have unlike work, as those of a triangle: where one ends a device takes the next, so
that small ones leave fewer waiting for the longest.  No workgroups share a tile.  On an
H200, a triangle times a square matrix takes 53 us at 1,024 (64 x 64: 81), 272 us at 2,048
(32 x 32: 322, shares of 128 x 128: 483) and 1.73 ms at 4,096 (1.80).
"""

LONG_NIBBLES: Final = 4096
NIBBLES_OF_LONG: Final[Options] = {"lanes": (64, 4)}
MANY_OF_NIBBLES: Final = 16384
NIBBLES_OF_MANY: Final[Options] = {"lanes": (16, 8), "columns": (4,)}
"""Rows of so many integers of 4 bits are work for 64 lanes, which take 2,048 of them in a
turn; many shorter ones for 16 lanes.  On an H200, 2,560 rows of 9,728 take 12 us so (16 with
32 lanes), 151,936 rows of 2,560 take 84 us (108), and 6,144 of those with 32 lanes 9 us."""

FEWEST_TERMS: Final = 8
SHORT_TERMS: Final = 32
MANY_OF_SHORT: Final = 2**18
"""For `MANY_OF_SHORT` results of up to `SHORT_TERMS` terms, deeper tiles would be empty."""

FLASH_TILES: Final[tuple[tuple[int, Options], ...]] = (
    (32, {"tile": (64, 64, 32)}),
    (64, {"tile": (64, 128, 64)}),
    (64, {"tile": (64, 128, 64), "depth": (8, 16)}),
    (256, {"tile": (128, 128, 128)}),
    (256, {"tile": (64, 64, 128), "micro": (8, 4), "depth": (8, 16)}),
)
"""The tiles of `flash` for attention of up to this many columns.

The first of those for 64 and for 256 take 20 and 32 KiB of workgroup memory; adapters that
have less pass over them.  Beyond the columns of a tile the scores are computed again for
each.  A block of keys costs barriers, and its weights go through memory: with 128 keys to
a block and 32 sums to an invocation, an H200 has 1.01 of PyTorch's speed at 4 x 16 x 2048
x 64 (causal 0.97), with 64 keys and 64 sums 0.73 (0.51); with 128 columns 0.84 and 0.65.
"""

FLASH_SUM_TILES: Final[tuple[tuple[int, Options], ...]] = (
    (64, {"tile": (64, 128, 64)}),
    (64, {"micro": (8, 4)}),
    (256, {"tile": (32, 128, 128), "micro": (4, 8)}),
    (256, {"tile": (64, 64, 128), "micro": (8, 4), "depth": (8, 16)}),
)
"""The same for gradients, whose invocations have two tiles of products, and one of sums.

With tiles of 64 x 64 x 64 and `micro(8, 8)` these are 192 registers, and NVIDIA's 255
would be spilled; with 128 keys there are 160.  On an H200, the gradients of 4 x 16 x 2048 x
64 take 7.7 ms so and 8.3 with `micro(8, 4)`; under a causal mask 5.4 and 4.7, as tiles with
fewer keys leave more out.  Those of 2 x 16 x 2048 x 128 take 7.9 ms with 32 rows, 9.7 with
`tile(64, 64, 128) micro(8, 4)`.
"""

FLASH_ROWS: Final[Options] = {"tile": (64, 64, 128), "rows": (4,)}
FLASH_NARROW_ROWS: Final[Options] = {"tile": (64, 64, 64), "rows": (4,)}
"""For few queries: all lanes of a workgroup have columns of their own, or share them."""

FEW_QUERIES: Final = 16
"""So many leave most of a tile of 64 empty, and as a rule most of a device."""

MANY_SCORES: Final = 2**25
"""So many f32 are the 128 MiB that WebGPU promises of a binding: more are not stored."""

MANY_COMPARISONS: Final = 1 << 14
MANY_TO_SORT: Final = 1 << 24
FEW_BINS: Final = 16
"""A keyed reduction may compare each term with each result in one dispatch.  Up to this many
comparisons, that is faster than the three dispatches of atomics, or the ten of a sort;
and with few bins, faster than any sort."""

FEW_WITH_VECTORS: Final = 65536
LANES_OF_VECTORS: Final = 256
"""Up to this many results, of at least this many terms each, do not keep a device busy alone.

On an H200, the forces of 1,000 bodies on each other take 9 us with a workgroup for each
body, 150 us with an invocation; of 16,384, 0.7 and 2.5 ms; of 65,536, the same."""

MANY_WINDOWS: Final = 1024
LONGEST_ROW_OF_WINDOWS: Final = 65_500
"""Windows of longer rows might be as long, and llvmpipe ends loops there."""

MANY_LANES: Final = 1024
LONG_LIGHT: Final = 16384
LONG_HEAVY: Final = 8192
"""So many lanes are worth their barriers for rows of more elements than that: where few
lanes can hold them, and where those have to hold several values of each element."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy with its options, the guard under which it applies, and the reason.

    It runs up to that many stages together, the first one included.
    """

    strategy: str
    reason: str
    guard: Expr | None = None
    options: Options = field(default_factory=dict)
    together: int = 1


def default_choices(task: Task) -> Iterator[Choice]:
    """Yield the compiler's own schedules, best first; the last has no guard.

    All of them stay within WebGPU's default limits, unless a guard asks for more.
    """
    for choice in _of_many(task):
        holds = True if choice.guard is None else _holds(choice.guard)
        if holds is False:
            continue
        if holds is True:
            yield replace(choice, guard=None)
            return
        yield choice


def _of_many(task: Task) -> Iterator[Choice]:
    """Yield the candidates: serial sums of neighbours together where there are many."""
    reduction = task.reduction
    keyed = reduction and is_conditional(reduction) and not fits_scatter(task)
    for choice in _candidates(task):
        if choice.strategy == "generic" and shares_reads(task) and not keyed:
            many = _compare(_size(task.domain), ">=", MANY_NEIGHBOURS)
            guard = many if choice.guard is None else _both(choice.guard, many)
            reason = f"{choice.reason}; neighbours share what they read"
            yield replace(
                choice, guard=guard, options={"neighbours": (4,)}, reason=reason
            )
        yield choice


def _holds(guard: Expr) -> bool | None:
    """Return whether a guard holds, if that is the same for all sizes."""
    match guard:
        case Binary(
            "and", Binary("<", a, Constant(most)), Binary(">", b, Constant(least))
        ):
            never = a == b and most <= least
            return False if never else _joined(guard, decisive=False)
        case Binary("and" | "or" as op):
            return _joined(guard, decisive=op == "or")
        case _:
            value = constant_value(guard)
            return None if value is None else bool(value)


def _joined(guard: Binary, *, decisive: bool) -> bool | None:
    """Return whether `and` or `or` of two guards holds; `decisive` decides alone."""
    sides = (_holds(guard.left), _holds(guard.right))
    if decisive in sides:
        return decisive
    return None if None in sides else not decisive


def _candidates(task: Task) -> Iterator[Choice]:
    if task.stage.loop:
        yield from _in_order(task)
        return
    if not is_scalar_only(task.stage):
        yield from _with_vectors(task)
        return
    if task.reduction and is_conditional(task.reduction):
        found = [*_by_condition(task)]
        yield from found
        if found and found[-1].guard is None:
            return
    if len(task.following) > 1:
        yield from _attention(task)
    if task.domain and _is_of_windows(task) and not _is_whole_product(task):
        yield _of_windows(task)
    if len(task.following) > 1:
        yield from _together(task)
    if task.reduction is None:
        yield Choice("map", "the stage holds no reduction")
        return
    if fits_gemm(task):
        yield from _untiled(task)
        return
    if len(reduction_of(task).indices) > 1:
        yield from _unless_tiles_fill(task)
    else:
        yield from _of_one_row(task)
    yield from _in_tiles(task)


def _by_condition(task: Task) -> Iterator[Choice]:
    """Yield the strategies for reductions under conditions: of prefixes, orders and keys."""
    if not fits_scan(task):
        yield Choice("scan", "each prefix from the one before")
        return
    yield from _sorted(task)
    yield from _keyed(task)


def _keyed(task: Task) -> Iterator[Choice]:
    """Yield `scatter` for keyed reductions of many terms and results."""
    found = scatter_of(task)
    if isinstance(found, str) or fits_scatter(task):
        return
    comparisons = _size((*task.domain, *found.reduce.indices))
    reason = "a key chooses the result of each term"
    if by_lists(found):
        many = _compare(comparisons, ">", MANY_TO_SORT)
        guard = _both(_compare(_size(found.bins), ">", FEW_BINS), many)
        yield Choice("scatter", reason, guard)
        return
    yield Choice("scatter", reason, _compare(comparisons, ">", MANY_COMPARISONS))
    yield Choice("generic", "few terms and results")


def _sorted(task: Task) -> Iterator[Choice]:
    """Yield `sort` for places in an order, and what moves elements there."""
    if not fits_sort(task):
        many = _compare(_size(task.domain), ">=", MANY_TO_ORDER)
        together = len(sort_run(task))
        yield Choice("sort", "elements in their order", many, together=together)


def _in_order(task: Task) -> Iterator[Choice]:
    """Yield the strategies for a recurrence."""
    if not fits_loop(task):
        yield Choice("loop", "only what is left of a recurrence is stored")
        return
    if not fits_steps(task):
        yield Choice("steps", "a step reads other elements of the one before")
        return
    if not fits_fold(task):
        reason = "a recurrence whose states are reduced, and not stored"
        yield Choice("fold", reason, together=2)
        return
    yield from _scan_of_steps(task)
    yield Choice("recur", "a recurrence at each element of the other indices")


def _scan_of_steps(task: Task) -> Iterator[Choice]:
    """Yield `scan` for recurrences of long rows whose steps are `a * h + b`.

    Products of factors may overflow where a loop's steps don't: rows of such are done
    again, but where all factors are 0, 1 or -1.
    """
    step = affine_step(task.stage)
    if isinstance(step, str) or fits_scan(task):
        return
    options: Options = {} if step.keeps_or_forgets else {"redo": (1,)}
    if suits_scan(task, options):
        return
    loop, domain = loop_of(task.stage), task.domain
    long = _compare(domain[loop.axis].extent, ">=", LONG_SERIES)
    if domain[-1] != domain[loop.axis]:
        long = _both(long, _compare(_size(task.stage.others), "<", FEW_SERIES))
    yield Choice("scan", "long rows, of which lanes share the steps", long, options)


def _is_whole_product(task: Task) -> bool:
    """Whether tiles suit a stage, and no condition leaves out any of its terms."""
    return not fits_gemm(task) and not product_of(task)[0].is_bounded


def _is_of_windows(task: Task) -> bool:
    return task.reduction is not None and is_window(task.reduction)


def _of_windows(task: Task) -> Choice:
    """Return the loop over what each result takes, not over all terms to leave most out."""
    enough = _compare(_size(task.domain), ">=", MANY_WINDOWS)
    short = _compare(_size(reduction_of(task).indices), "<=", LONGEST_ROW_OF_WINDOWS)
    return Choice("generic", "a few terms for each result", _both(enough, short))


def _attention(task: Task) -> Iterator[Choice]:
    """Yield attention in one pass, in tiles that suit the number of columns."""
    found = flash_of(task)
    if isinstance(found, str):
        return
    if isinstance(found, AttentionSums):
        yield from _attention_sums(found)
        return
    together, columns = len(found.stages), found.column.extent
    if not suits_flash(task, FLASH_ROWS):
        few = _compare(found.row.extent, "<=", FEW_QUERIES)
        narrow = _both(few, _compare(columns, "<=", 64))
        reason = "few queries, and many workgroups that share the keys"
        for guard, options in ((narrow, FLASH_NARROW_ROWS), (few, FLASH_ROWS)):
            yield Choice("flash", reason, guard, options, together)
    reason = "attention in one pass over the keys, which stores no scores"
    for most, options in FLASH_TILES:
        guard = _compare(columns, "<=", most)
        yield Choice("flash", reason, guard, options, together)
    scores = _size((*found.batch, found.row, found.key))
    many = _compare(scores, ">", MANY_SCORES)
    widest = FLASH_TILES[-1][1]
    yield Choice("flash", f"{reason}: they are many", many, widest, together)


def _attention_sums(found: AttentionSums) -> Iterator[Choice]:
    """Yield the gradients of attention, in tiles that suit the numbers of columns."""
    reason = "gradients of attention by tiles of scores, which are not stored"
    together = len(found.stages)
    sums = [each for pass_ in found.passes for each in pass_.sums]
    # Of a mask, tiles with fewer keys leave more out.
    masked = any(mask_of(each.weight) for each in sums)
    for most, options in FLASH_SUM_TILES[1:] if masked else FLASH_SUM_TILES:
        few = reduce(_both, (_compare(x.column.extent, "<=", most) for x in sums))
        yield Choice("flash", reason, few, options, together)
    tiles, outer = found.passes[0].tiles, found.passes[0].outer
    scores = _size((*tiles.batch, *outer, tiles.row, tiles.key))
    many = _compare(scores, ">", MANY_SCORES)
    widest = FLASH_SUM_TILES[-1][1]
    yield Choice("flash", f"{reason}: they are many", many, widest, together)


def _in_tiles(task: Task) -> Iterator[Choice]:
    """Yield tiles by the size of a product: small ones or large ones."""
    found, _ = product_of(task)
    sides = sides_of(task)
    narrow = _either(*(_compare(_size(side), "<=", NARROW) for side in sides))
    reason = "two factors, each read once per tile"
    small = f"{reason}; there would be few large tiles"
    if any(len(side) > 1 for side in sides):
        rows, _ = sides
        many = _compare(_size(task.domain), ">=", MANY_WINDOWED)
        tall = _compare(_size(rows), ">", NARROW // 2)
        low = _compare(_size(rows), "<=", NARROW)
        light = _either(low, _compare(_size(found.over), "<=", LIGHT_WINDOW))
        apart = _both(_both(many, tall), light)
        yield Choice("gemm", reason, apart, MANY_WINDOWS_OPTIONS)
        yield Choice("gemm", small, narrow, SMALL_OPTIONS)
        yield Choice("gemm", reason, None, WINDOW_OPTIONS)
        return
    short = _compare(_size(found.over), "<=", SHORT_TERMS)
    many = _compare(_size(task.domain), ">=", MANY_OF_SHORT)
    if len(task.domain) == 2:  # Points, as a rule: heads of attention have more terms.
        fewest = _both(_compare(_size(found.over), "<", FEWEST_TERMS), many)
        yield Choice("generic", f"below {FEWEST_TERMS} terms", fewest)
        shallow = _both(_both(narrow, short), many)
        yield Choice("gemm", f"{reason}; there are few terms", shallow, SHALLOW_OPTIONS)
    few = _compare(_size(task.domain), "<=", SMALL_PRODUCT)
    yield Choice("gemm", small, _either(narrow, few), SMALL_OPTIONS)
    if found.is_bounded:
        for most, options in BOUNDED_TILES:
            up_to = None if most is None else _compare(_size(task.domain), "<=", most)
            yield Choice("gemm", f"{reason}; tiles have unlike work", up_to, options)
        return
    yield Choice("gemm", reason, None, LARGE_OPTIONS)


def _with_vectors(task: Task) -> Iterator[Choice]:
    """Yield the strategies for stages with vectors: in parts where rows are few."""
    if task.reduction is None:
        yield Choice("map", "the stage holds no reduction")
        return
    long = _compare(_size(task.reduction.indices), ">", LONG_ROW)
    reason = "a long reduction for few results"
    if not task.domain:
        few_terms = _compare(_size(task.reduction.indices), "<", SHORT_ROW)
        yield Choice("generic", f"below {SHORT_ROW} terms", few_terms)
        yield Choice("reduce", "there is one result")
        return
    few = _compare(_size(task.domain), "<", FEW_ROWS)
    yield Choice("reduce", reason, _both(few, long))
    some = _compare(_size(task.domain), "<", FEW_WITH_VECTORS)
    enough = _compare(_size(task.reduction.indices), ">=", LANES_OF_VECTORS)
    yield Choice("reduce", "lanes share the terms of each result", _both(some, enough))
    yield Choice("generic", "an invocation per result")


def _of_one_row(task: Task) -> Iterator[Choice]:
    one_row = _compare(row_of(task).extent, "==", 1)
    if not fits_gemv(task):
        yield from _gemv(task, "a product with one row reads the matrix once", one_row)
        return
    yield Choice(_alone(task), "there is one row, and no tile to fill", one_row)


def _gemv(task: Task, reason: str, guard: Expr | None) -> Iterator[Choice]:
    """Yield products with vectors: of nibbles, by how long and how many the rows are."""
    found, layout = layout_of(task)
    if layout == "nibbles":
        long = _compare(_size(found.over), ">=", LONG_NIBBLES)
        many = _compare(found.column.extent, ">=", MANY_OF_NIBBLES)
        for which, options in ((long, NIBBLES_OF_LONG), (many, NIBBLES_OF_MANY)):
            both = which if guard is None else _both(guard, which)
            yield Choice("gemv", reason, both, options)
    yield Choice("gemv", reason, guard)


def _unless_tiles_fill(task: Task) -> Iterator[Choice]:
    """Yield candidates without tiles, where windows would leave tiles empty.

    A tile pays off where it is as deep as the terms are many, at most, and where a
    quarter of each side is filled.
    """
    found, _ = product_of(task)
    rows, columns = sides_of(task)
    few_terms = _compare(_size(found.over), "<", SMALL.k // 2)
    few_rows = _compare(_size(rows), "<", SMALL.m // 4)
    few_columns = _compare(_size(columns), "<", SMALL.n // 4)
    empty = _either(_either(few_terms, few_rows), few_columns)
    for choice in _untiled(task):
        guard = empty if choice.guard is None else _both(empty, choice.guard)
        yield replace(choice, guard=guard)


def _untiled(task: Task) -> Iterator[Choice]:
    if not is_contiguous_at_all(task):
        yield Choice("generic", "nothing is read contiguously")
        return
    alone, over = _alone(task), reduction_of(task).indices
    ragged = ragged_of(task)
    if alone == "rows" and not isinstance(ragged, str):
        yield from _ragged(ragged)
        return
    if alone == "rows":
        yield _in_parts(task, task.domain, over)
    short = SHORT_COLUMN if is_columnwise(task) else SHORT_ROW
    is_gemv = not fits_gemv(task)
    # Strategy rows has a way of its own for short ones, but not for windows.
    if task.domain and (is_gemv or alone != "rows" or len(over) > 1):
        yield Choice("generic", f"below {short} terms in a row", _short(task, short))
    if is_gemv:
        yield from _gemv(task, "a product of a matrix and a vector", None)
        return
    if alone == "rows":
        yield _on_many_lanes(task, over, together=1)
    yield Choice(alone, "a reduction over contiguous memory")


def _ragged(found: RaggedRows) -> Iterator[Choice]:
    """Yield as many lanes for a row as the ranges that are read have terms on average."""
    for mean, lanes in LANES_BY_MEAN:
        rows = Binary("*", _extent(found.along.extent), _extent(mean), Scalar.I32)
        terms = _extent(found.index.extent)
        guard = Binary("<=", terms, rows, Scalar.BOOL)
        reason = f"ranges of up to {mean} terms on average"
        yield Choice("ragged", reason, guard, {"lanes": (lanes,)})
    yield Choice("ragged", "ranges of many terms on average")


def _alone(task: Task) -> str:
    """Return the strategy for a single reduction over contiguous memory."""
    in_rows = task.domain and not is_columnwise(task)
    return "rows" if in_rows and not fits_rows(task.at_most(1)) else "reduce"


def _in_parts(
    task: Task, rows: tuple[Index, ...], columns: tuple[Index, ...]
) -> Choice:
    """Give few and long rows to several workgroups each, one stage after the other."""
    guard = _compare(_size(columns), ">", LONG_ROW)
    if rows:
        few = _compare(_size(rows), "<", FEW_ROWS)
        guard = _both(few, guard)
    strategy = "map" if task.reduction is None else "reduce"
    return Choice(strategy, "few rows, too long for a workgroup each", guard)


def _short(task: Task, most: int) -> Expr:
    """Return whether an invocation does well to reduce alone.

    Windows have short rows, but many terms: where results are few, lanes share them.
    """
    *outer, last = reduction_of(task).indices
    few_terms = _compare(_size(reduction_of(task).indices), "<", most)
    if not outer:
        return few_terms
    short_row = _compare(last.extent, "<", most)
    many = _compare(_size(task.domain), ">=", MANY_RESULTS)
    return _either(few_terms, _both(short_row, many))


def _together(task: Task) -> Iterator[Choice]:
    """Yield `rows` for several stages, unless the rows are few and long."""
    run = _run_together(task)
    if run is not None:
        yield _in_parts(task, run.rows, run.columns)
        together = len(run.stages)
        yield _on_many_lanes(task, run.columns, together=together)
        reason = f"{together} stages share their rows"
        yield Choice("rows", reason, together=together)


def _on_many_lanes(task: Task, columns: tuple[Index, ...], *, together: int) -> Choice:
    """Give long rows as many lanes as large adapters have in a workgroup."""
    light = values_held(task.at_most(together)) <= 1
    most = LONG_LIGHT if light else LONG_HEAVY
    long = _compare(_size(columns), ">", most)
    enough = _compare(UniformValue("adapter.invocations", Scalar.I32), ">=", MANY_LANES)
    subgroups = UniformValue("adapter.subgroups", Scalar.BOOL)
    return Choice(
        "rows",
        "long rows, and an adapter with many lanes",
        _both(_both(long, enough), subgroups),
        {"lanes": (MANY_LANES,), "subgroups": (1,)},
        together,
    )


def _run_together(task: Task) -> Run | None:
    """Return the stages that are best run together from this one on, if any.

    At least two go over the elements of a row, or there would be nothing to share; and
    none is of two factors or a scan, which have better ways.
    """
    run = run_of(task)
    while isinstance(run, Run):
        tasks = [replace(task, stage=stage) for stage in run.stages]
        tiled = [not fits_gemm(each) or not fits_scan(each) for each in tasks]
        if not any(tiled):
            sharing = sum(run.part(stage) is not Part.ONE for stage in run.stages)
            return run if sharing > 1 else None
        end = tiled.index(True)
        run = run_of(task.at_most(end)) if end else ""
    return None


def _size(indices: tuple[Index, ...]) -> Expr:
    """Return the number of elements of a domain that has an index."""
    first, *rest = (index.extent for index in indices)
    total = _extent(first)
    for extent in rest:
        total = Binary("*", total, _extent(extent), Scalar.I32)
    return total


def _extent(extent: Extent) -> Expr:
    if isinstance(extent, int):
        return Constant(extent, Scalar.I32)
    return DimValue(extent)


def _both(one: Expr, other: Expr) -> Expr:
    return Binary("and", one, other, Scalar.BOOL)


def _either(one: Expr, other: Expr) -> Expr:
    return Binary("or", one, other, Scalar.BOOL)


def _compare(left: Extent | Expr, op: BinaryOp, right: int) -> Expr:
    side = _extent(left) if isinstance(left, int | str) else left
    return Binary(op, side, Constant(right, Scalar.I32), Scalar.BOOL)
