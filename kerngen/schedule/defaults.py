"""Choose the default schedules of a stage, each with the reason for the choice.

The schedules of a stage are a list; each but the last has a guard on the lengths of a call or
on the adapter, and the first one whose guard holds runs.  For softmax along rows of m x n:

    reduce                      if m < 64 and n > 65536
    rows, 1024 lanes            if n > 16384 and the adapter has as many, and subgroups
    rows, 512 lanes             if 8192 < n <= 16384, n % 4 != 0 and the adapter has as many
    rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.analysis.conditions import is_conditional
from kerngen.ir.nodes import Index
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    Guard,
    Symbol,
    all_of,
    any_of,
    compare,
    remainder,
)
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.flash.choices import attention_choices
from kerngen.schedule.gemm.choices import tiled_choices
from kerngen.schedule.gemm.shallow import FEWEST_TERMS
from kerngen.schedule.gemm.strategy import fits_gemm, row_of
from kerngen.schedule.gemm.tiling import SMALL
from kerngen.schedule.gemv.choices import (
    FEW_OF_GEMV,
    few_result_choices,
    statistic_choices,
    suits_rows,
    vector_choices,
)
from kerngen.schedule.gemv.strategy import fits_gemv
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.lowering.ranges import is_window
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.orientation import is_columnwise, is_contiguous_at_all
from kerngen.schedule.per_element import takes_fours
from kerngen.schedule.ragged.shape import RaggedRows, ragged_of
from kerngen.schedule.ragged.strategy import LANES_BY_MEAN
from kerngen.schedule.recurrence.fold import fits_fold
from kerngen.schedule.recurrence.in_steps import fits_steps
from kerngen.schedule.recurrence.strategy import fits_loop
from kerngen.schedule.recurrence.turn import loop_of
from kerngen.schedule.rows.run import RowRole, Run, run_of
from kerngen.schedule.rows.shape import INVOCATIONS
from kerngen.schedule.rows.strategy import EDGE_CHUNKS, element_uses, fits_rows
from kerngen.schedule.scalar_only import is_scalar_only
from kerngen.schedule.scan.affine_form import affine_step
from kerngen.schedule.scan.strategy import fits_scan, suits_scan
from kerngen.schedule.scatter.shape import scatter_of
from kerngen.schedule.scatter.strategy import by_lists, fits_scatter
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.sort.strategy import fits_sort, sort_run
from kerngen.schedule.task import Options, Task

SHORT_ROW: Final = 16
"""With fewer terms, most lanes that share a row would be idle: an invocation adds them."""

SHORT_COLUMN: Final = 32
"""With fewer terms along a column, most of its slices of lanes would be idle."""

MANY_RESULTS: Final = 16384
"""From this many results on, one invocation for each result keeps a device busy."""

MANY_COLUMNS: Final = 4096
"""From this many columns on, a convolution of few rows has tiles."""

MANY_OF_FEW_TERMS: Final = 2**20
"""From this many results on, a convolution of 8 to 15 terms has tiles."""

MANY_NEIGHBOURS: Final = 2**18
"""From this many results on, an invocation computes four of them.

A device is busy then with a fourth of the invocations, in workgroups of 256.  On an H200,
4096 x 4096 sums of 3 terms take 36 us four at a time; one at a time 65 us in workgroups of
256, and 160 us in those of 64.
"""

FEW_ROWS: Final = 64
LONG_ROW: Final = 65536
"""Fewer than 64 rows, of more than 65,536 elements, are reduced by several workgroups each:
with one for each row, most of a device would be idle."""

LONG_SERIES: Final = 512
FEW_SERIES: Final = 1024
"""When a recurrence is a scan: from 512 steps on, which the lanes of a workgroup share.

Where the steps are not along the last axis, only for fewer than 1024 rows: more rows keep
lanes busy with a row each, whose reads are coalesced.
"""

MANY_TO_ORDER: Final = 4096
"""From this many elements on, the twelve dispatches that sort them are faster than comparing
each element with each other one."""

MANY_COMPARISONS: Final = 1 << 14
MANY_TO_SORT: Final = 1 << 24
FEW_BINS: Final = 16
"""When a keyed reduction compares each term with each result, in one dispatch.

Up to 2^14 comparisons that is faster than the three dispatches of atomics, and up to 2^24
faster than the ten of a sort; with up to 16 bins, it is faster than any sort.
"""

FEW_WITH_VECTORS: Final = 65536
LANES_OF_VECTORS: Final = 256
"""When lanes share the terms of each result of vectors: for fewer than 65,536 results, of 256
terms or more.  With an invocation each, so few results do not keep a device busy.

On an H200, the forces of 1,000 bodies on each other take 9 us with a workgroup for each
body, 150 us with an invocation; of 16,384, 0.7 and 2.5 ms; of 65,536, the same.
"""

MANY_WINDOWS: Final = 1024
LONGEST_ROW_OF_WINDOWS: Final = 65_500
"""When windows have a loop for each result: from 1024 results on, in rows of up to 65,500.

A window may be as long as its row, and llvmpipe, a software adapter, ends loops after 65,535
iterations.
"""

MANY_LANES: Final = 1024
LONG_LIGHT: Final = 16384
LONG_HEAVY: Final = 8192
"""When 1024 lanes share a row: from which length on they are worth their barriers.

Rows of more than 16,384 elements do not fit the registers of fewer lanes; nor do rows of more
than 8192 if each element has several values.  On an H200, softmax of 128 x 32768 takes 12.7 us
with 1024 lanes and subgroups instead of 26.5, of 4096 x 32768 262 instead of 514.
"""

EDGE_LANES: Final = 512
EDGE_BOUNDS: Final = (INVOCATIONS * EDGE_CHUNKS, EDGE_LANES * EDGE_CHUNKS)
"""How many lanes hold a row of 8,193 to 16,384 single elements in registers.

On an H200, softmax of 4,000 x 10,001 takes 98 us on 512 lanes, 149 on 256, which each pass
reads again; of 3,000 x 16,001 102 and 218.
"""


def default_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the compiler's own schedules of a stage, best first; the last has no guard.

    All of them stay within WebGPU's default limits, unless a guard asks for more.
    """
    for choice in _of_many(task):
        if choice.guard != NEVER:
            yield choice
        if choice.guard == ALWAYS:
            return


def _of_many(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the candidates; in front of a serial sum, that of four for each invocation."""
    for choice in _candidates(task):
        if choice.strategy == "generic" and takes_fours(task):
            many = compare(">=", domain_size(task.domain), MANY_NEIGHBOURS)
            guard = all_of(choice.guard, many)
            reason = f"{choice.reason}; an invocation has four"
            options: Options = {"neighbours": (4,)}
            yield replace(choice, guard=guard, options=options, reason=reason)
        yield choice


def _candidates(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the candidates of a stage, the most special kinds of stages first.

    These are recurrences, stages of vectors, reductions under conditions, runs of stages that
    are better together (attention, rows), stages without a reduction, single reductions, and
    products in tiles.
    """
    if task.stage.loop:
        yield from _in_order(task)
        return
    if not is_scalar_only(task.stage):
        yield from _with_vectors(task)
        return
    # Prefixes, orders and keys; if one of these always applies, nothing else is tried.
    if task.reduction and is_conditional(task.reduction):
        found = [*_by_condition(task)]
        yield from found
        if found and found[-1].guard == ALWAYS:
            return
    # Runs of several stages, attention before rows.
    if len(task.following) > 1:
        yield from attention_choices(task)
        yield from statistic_choices(task)
    if task.domain and _is_of_windows(task) and not _is_whole_product(task):
        yield _of_windows(task)
    if len(task.following) > 1:
        yield from _together(task)
    if task.reduction is None:
        yield ScheduleChoice("map", "the stage holds no reduction")
        return
    # A single reduction: without tiles where `gemm` does not fit (`fits_gemm` is the reason),
    # else in tiles, but for sizes that leave these empty.
    if fits_gemm(task):
        yield from _untiled(task)
        return
    if len(reduction_of(task).indices) > 1:
        yield from _unless_tiles_fill(task)
    else:
        yield from _of_few_results(task)
    yield from tiled_choices(task)


def _by_condition(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the strategies for reductions under conditions: of prefixes, orders and keys."""
    if not fits_scan(task):
        yield ScheduleChoice("scan", "each prefix from the one before")
        return
    yield from _sorted(task)
    yield from _keyed(task)


def _keyed(task: Task) -> Iterator[ScheduleChoice]:
    """Yield `scatter` for keyed reductions of many terms and results."""
    found = scatter_of(task)
    if isinstance(found, str) or fits_scatter(task):
        return
    comparisons = domain_size((*task.domain, *found.reduce.indices))
    reason = "a key chooses the result of each term"
    if by_lists(found):
        many = compare(">", comparisons, MANY_TO_SORT)
        guard = all_of(compare(">", domain_size(found.bins), FEW_BINS), many)
        yield ScheduleChoice("scatter", reason, guard)
        return
    yield ScheduleChoice("scatter", reason, compare(">", comparisons, MANY_COMPARISONS))
    yield ScheduleChoice("generic", "few terms and results")


def _sorted(task: Task) -> Iterator[ScheduleChoice]:
    """Yield `sort` for places in an order, and what moves elements there."""
    if not fits_sort(task):
        many = compare(">=", domain_size(task.domain), MANY_TO_ORDER)
        together = len(sort_run(task))
        yield ScheduleChoice("sort", "elements in their order", many, together=together)


def _in_order(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the strategies for a recurrence."""
    if not fits_loop(task):
        yield ScheduleChoice("loop", "only what is left of a recurrence is stored")
        return
    if not fits_steps(task):
        yield ScheduleChoice("steps", "a step reads other elements of the one before")
        return
    if not fits_fold(task):
        reason = "a recurrence whose states are reduced, and not stored"
        yield ScheduleChoice("fold", reason, together=2)
        return
    yield from _scan_of_steps(task)
    yield ScheduleChoice("recur", "a recurrence at each element of the other indices")


def _scan_of_steps(task: Task) -> Iterator[ScheduleChoice]:
    """Yield `scan` for recurrences of long rows whose steps are `a * h + b`.

    A scan multiplies the factors `a` of several steps, which may overflow where a loop's
    steps don't.  With `redo` a last dispatch computes such rows again by a loop; where all
    factors are 0, 1 or -1 there are none.
    """
    step = affine_step(task.stage)
    if isinstance(step, str) or fits_scan(task):
        return
    options: Options = {} if step.keeps_or_forgets else {"redo": (1,)}
    if suits_scan(task, options):
        return
    loop, domain = loop_of(task.stage), task.domain
    long = compare(">=", extent_size(domain[loop.axis].extent), LONG_SERIES)
    if domain[-1] != domain[loop.axis]:
        long = all_of(long, compare("<", domain_size(task.stage.others), FEW_SERIES))
    yield ScheduleChoice(
        "scan", "long rows, of which lanes share the steps", long, options
    )


def _is_whole_product(task: Task) -> bool:
    """Whether tiles suit a stage, and no condition leaves out any of its terms."""
    return not fits_gemm(task) and not product_of(task)[0].is_bounded


def _is_of_windows(task: Task) -> bool:
    return task.reduction is not None and is_window(task.reduction)


def _of_windows(task: Task) -> ScheduleChoice:
    """Return the candidate whose loop goes over the terms of a window, and not over all."""
    enough = compare(">=", domain_size(task.domain), MANY_WINDOWS)
    short = compare(
        "<=", domain_size(reduction_of(task).indices), LONGEST_ROW_OF_WINDOWS
    )
    return ScheduleChoice(
        "generic", "a few terms for each result", all_of(enough, short)
    )


def _with_vectors(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the strategies for stages with vectors: in parts where rows are few."""
    if task.reduction is None:
        yield ScheduleChoice("map", "the stage holds no reduction")
        return
    # A single result, few long rows, many terms for few results; else an invocation each.
    long = compare(">", domain_size(task.reduction.indices), LONG_ROW)
    reason = "a long reduction for few results"
    if not task.domain:
        few_terms = compare("<", domain_size(task.reduction.indices), SHORT_ROW)
        yield ScheduleChoice("generic", f"below {SHORT_ROW} terms", few_terms)
        yield ScheduleChoice("reduce", "there is one result")
        return
    few = compare("<", domain_size(task.domain), FEW_ROWS)
    yield ScheduleChoice("reduce", reason, all_of(few, long))
    some = compare("<", domain_size(task.domain), FEW_WITH_VECTORS)
    enough = compare(">=", domain_size(task.reduction.indices), LANES_OF_VECTORS)
    yield ScheduleChoice(
        "reduce", "lanes share the terms of each result", all_of(some, enough)
    )
    yield ScheduleChoice("generic", "an invocation per result")


def _of_few_results(task: Task) -> Iterator[ScheduleChoice]:
    """Yield candidates for products of which there would be few tiles."""
    if not fits_gemv(task):
        yield from few_result_choices(task)
        return
    one_row = compare("==", extent_size(row_of(task).extent), 1)
    yield ScheduleChoice(_alone(task), "there is one row, and no tile to fill", one_row)


def _unless_tiles_fill(task: Task) -> Iterator[ScheduleChoice]:
    """Yield candidates without tiles, under the guard that windows would leave tiles empty.

    They would with fewer terms than half of the depth of a small tile (16), or where less
    than a quarter of one of its sides (8) is filled.  Few channels of many images have low tiles:
    the gradient of photographs, of 3 channels, took 7 ms without them, and 0.2 in them.  Many
    results of a convolution have tiles from 8 terms on: 32 kernels of 3 x 3 over 64 images of
    1 x 28 x 28 take 8 us, and 22 without; but 8 kernels over 16 images 6, and 4.
    """
    found, _ = product_of(task)
    rows, columns = sides_of(task)
    terms = domain_size(found.over)
    few_terms = compare("<", terms, SMALL.k // 2)
    few_rows = compare("<", domain_size(rows), SMALL.m // 4)
    if len(columns) > 1:
        few_rows = all_of(few_rows, compare("<", domain_size(columns), MANY_COLUMNS))
        few_results = compare("<", domain_size(task.domain), MANY_OF_FEW_TERMS)
        fewest = compare("<", terms, FEWEST_TERMS)
        few_terms = any_of(fewest, all_of(few_terms, few_results))
    few_columns = compare("<", domain_size(columns), SMALL.n // 4)
    empty = any_of(few_terms, few_rows, few_columns)
    for choice in _untiled(task):
        yield replace(choice, guard=all_of(empty, choice.guard))


def _untiled(task: Task) -> Iterator[ScheduleChoice]:
    if not is_contiguous_at_all(task):
        yield ScheduleChoice("generic", "nothing is read contiguously")
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
    # Strategy rows has a way of its own for short ones, but not for windows; nor are products
    # for it whose matrix is not along the terms, or of narrow integers.
    by_rows = suits_rows(task) if is_gemv else alone == "rows"
    if task.domain and (not by_rows or len(over) > 1):
        yield ScheduleChoice(
            "generic", f"below {short} terms in a row", _short(task, short)
        )
    if is_gemv:
        if by_rows:
            few = compare("<=", domain_size(task.domain), FEW_OF_GEMV)
            for choice in _on_many_lanes(task, over, together=1):
                yield replace(choice, guard=all_of(few, choice.guard))
        yield from vector_choices(task)
        return
    if by_rows:
        yield from _on_many_lanes(task, over, together=1)
    yield ScheduleChoice(alone, "a reduction over contiguous memory")


def _ragged(found: RaggedRows) -> Iterator[ScheduleChoice]:
    """Yield `ragged` with more lanes for a row, the more terms the ranges have on average."""
    for mean, lanes in LANES_BY_MEAN:
        rows = extent_size(found.along.extent)
        guard = compare("<=", extent_size(found.index.extent), rows * mean)
        reason = f"ranges of up to {mean} terms on average"
        yield ScheduleChoice("ragged", reason, guard, {"lanes": (lanes,)})
    yield ScheduleChoice("ragged", "ranges of many terms on average")


def _alone(task: Task) -> str:
    """Return the strategy for a single reduction over contiguous memory."""
    in_rows = task.domain and not is_columnwise(task)
    return "rows" if in_rows and not fits_rows(task.at_most(1)) else "reduce"


def _in_parts(
    task: Task, rows: tuple[Index, ...], columns: tuple[Index, ...]
) -> ScheduleChoice:
    """Give few and long rows to several workgroups each, one stage after the other."""
    guard = compare(">", domain_size(columns), LONG_ROW)
    if rows:
        few = compare("<", domain_size(rows), FEW_ROWS)
        guard = all_of(few, guard)
    strategy = "map" if task.reduction is None else "reduce"
    return ScheduleChoice(strategy, "few rows, too long for a workgroup each", guard)


def _short(task: Task, most: int) -> Guard:
    """Return the guard that an invocation should reduce alone: for fewer than `most` terms.

    A sum over several indices, as over a window, may have short rows and still many terms:
    then an invocation reduces alone only if there are many results.
    """
    *outer, last = reduction_of(task).indices
    few_terms = compare("<", domain_size(reduction_of(task).indices), most)
    if not outer:
        return few_terms
    short_row = compare("<", extent_size(last.extent), most)
    many = compare(">=", domain_size(task.domain), MANY_RESULTS)
    return any_of(few_terms, all_of(short_row, many))


def _together(task: Task) -> Iterator[ScheduleChoice]:
    """Yield `rows` for several stages, unless the rows are few and long."""
    run = _run_together(task)
    if run is not None:
        yield _in_parts(task, run.rows, run.columns)
        together = len(run.stages)
        yield from _on_many_lanes(task, run.columns, together=together)
        reason = f"{together} stages share their rows"
        yield ScheduleChoice("rows", reason, together=together)


def _on_many_lanes(
    task: Task, columns: tuple[Index, ...], *, together: int
) -> Iterator[ScheduleChoice]:
    """Give long rows more lanes than WebGPU promises, on adapters that have them."""
    held, passes = element_uses(task.at_most(together))
    length, lanes = domain_size(columns), Symbol("adapter.invocations")
    reason = "long rows, and an adapter with many lanes"
    most = LONG_LIGHT if held <= 1 else LONG_HEAVY
    guard = all_of(
        compare(">", length, most),
        compare(">=", lanes, MANY_LANES),
        compare("!=", Symbol("adapter.subgroups"), 0),
    )
    options: Options = {"lanes": (MANY_LANES,), "subgroups": (1,)}
    yield ScheduleChoice("rows", reason, guard, options, together)
    if held == 1 and passes > 1:
        reason = f"long rows of single elements, and an adapter with {EDGE_LANES} lanes"
        guard = all_of(
            compare(">", length, EDGE_BOUNDS[0]),
            compare("<=", length, EDGE_BOUNDS[1]),
            compare("!=", remainder(extent_size(columns[-1].extent), LANES), 0),
            compare(">=", lanes, EDGE_LANES),
        )
        options = {"lanes": (EDGE_LANES,)}
        yield ScheduleChoice("rows", reason, guard, options, together)


def _run_together(task: Task) -> Run | None:
    """Return the stages from this one on that are best run together by `rows`, or None.

    At least two of them must go over the elements of a row, or there would be nothing to
    share.  The run ends before a product of two factors or a scan, which other strategies run
    faster.
    """
    run = run_of(task)
    while isinstance(run, Run):
        tasks = [replace(task, stage=stage) for stage in run.stages]
        tiled = [not fits_gemm(each) or not fits_scan(each) for each in tasks]
        if not any(tiled):
            sharing = sum(run.part(stage) is not RowRole.ONE for stage in run.stages)
            return run if sharing > 1 else None
        end = tiled.index(True)
        run = run_of(task.at_most(end)) if end else ""
    return None
