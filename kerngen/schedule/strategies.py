"""The table of strategies: one row each.

The scheduler, the checks of schedules and reports look strategies up here; their options are
in `kerngen/ir/strategies.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.staging.stages import Stage
from kerngen.plan.size import ALWAYS, Guard
from kerngen.schedule.flash.strategy import (
    fits_flash,
    flash_requires,
    flash_run,
    lower_flash,
    suits_flash,
)
from kerngen.schedule.flash.tiling import flash_tiling
from kerngen.schedule.gemm.strategy import fits_gemm, lower_gemm, suits_gemm
from kerngen.schedule.gemm.tiling import tiling_of
from kerngen.schedule.gemv.strategy import (
    fits_gemv_run,
    gemv_run,
    lower_gemv,
    settled_gemv,
    suits_gemv,
)
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.lowering.joining import by_subgroups, suits_subgroups
from kerngen.schedule.lowering.ranks import ranked
from kerngen.schedule.orientation import is_columnwise
from kerngen.schedule.packed import lower_packed
from kerngen.schedule.per_element import (
    by_neighbours,
    fits_generic,
    fits_map,
    lower_generic,
    lower_map,
)
from kerngen.schedule.program import Variant
from kerngen.schedule.ragged.strategy import (
    fits_ragged,
    lower_ragged,
    ragged_options,
    suits_ragged,
)
from kerngen.schedule.recurrence.fold import fits_fold, fold_run, lower_fold
from kerngen.schedule.recurrence.in_steps import fits_steps, lower_steps
from kerngen.schedule.recurrence.strategy import fits_loop, fits_recur, lower_recurrence
from kerngen.schedule.reduce.columnwise import lower_columnwise
from kerngen.schedule.reduce.parts import lower_parts
from kerngen.schedule.rows.strategy import (
    fits_rows,
    lower_rows,
    row_options,
    rows_run,
    suits_rows,
)
from kerngen.schedule.scalar_only import (
    is_packed,
    is_scalar_only,
    why_not_scalar_only,
)
from kerngen.schedule.scan.strategy import (
    fits_scan,
    lower_scan,
    scan_options,
    suits_scan,
)
from kerngen.schedule.scatter.strategy import (
    fits_scatter,
    lower_scatter,
    scatter_options,
    suits_scatter,
)
from kerngen.schedule.sort.strategy import fits_sort, lower_sort, sort_run
from kerngen.schedule.task import Options, Task
from kerngen.schedule.tiled_map import tiled_variant


def _one(task: Task) -> tuple[Stage, ...]:
    """Return the task's stage: most strategies run one."""
    return (task.stage,)


def _any_options(task: Task, options: Options) -> str:
    """Return "": with most strategies, a stage that fits does so with all options."""
    del task, options
    return ""


def _any_sizes(task: Task) -> Guard:
    """Return the condition of most strategies: they compute all results for all sizes."""
    del task
    return ALWAYS


def _as_given(options: Options) -> Hashable:
    """Return the options themselves: those that are left out have no default."""
    return tuple(sorted(options.items()))


def _no_faults(options: Options) -> Iterator[str]:
    """Yield nothing: most options are right whatever the others are."""
    del options
    return iter(())


@final
@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy: a row of the table that the scheduler chooses from.

    - `in_order`: whether it runs recurrences (True), other stages (False), or both (None)
    - `fits`: returns why it can't run a stage, or "" if it can
    - `suits`: returns why it can't run a stage that fits with the options given, or ""
    - `requires`: returns the condition on the sizes under which it computes all results
    - `lower`: yields the variants for a stage that fits, the last of which takes any size
    - `runs`: returns the stages that the variants run together, the given one first
    - `shader_key`: returns the options completed by their defaults; schedules of a stage with
      equal keys share their shaders
    - `faults`: yields what is wrong with options whatever the stage is
    """

    name: str
    fits: Callable[[Task], str]
    lower: Callable[[Task, Options], Iterator[Variant]]
    runs: Callable[[Task], tuple[Stage, ...]] = _one
    suits: Callable[[Task, Options], str] = _any_options
    requires: Callable[[Task], Guard] = _any_sizes
    shader_key: Callable[[Options], Hashable] = _as_given
    faults: Callable[[Options], Iterator[str]] = _no_faults
    in_order: bool | None = False

    def refusal(self, task: Task, options: Options) -> str:
        """Return why a stage can't run with these options, or "" if it can."""
        return self.fits(task) or self.suits(task, options)


def _plain(fits: Callable[[Task], str]) -> Callable[[Task], str]:
    """Return `fits` for a strategy that computes with scalars alone."""

    def check(task: Task) -> str:
        return why_not_scalar_only(task.stage) or fits(task)

    return check


def _or_packed(
    lower: Callable[[Task, Options], Iterator[Variant]],
) -> Callable[[Task, Options], Iterator[Variant]]:
    """Return a lowering function for stages that write narrow integers, too.

    Those are lowered by `lower_packed`, all others by `lower`.
    """

    def either(task: Task, options: Options) -> Iterator[Variant]:
        return lower_packed(task) if is_packed(task.stage) else lower(task, options)

    return either


def _lower_map(task: Task, options: Options) -> Iterator[Variant]:
    if tiled := tiled_variant(task):
        yield tiled
    yield from lower_map(task, options)


def _suits_generic(task: Task, options: Options) -> str:
    if options and is_packed(task.stage):
        return "it writes narrow integers, of which an invocation fills a word"
    return ""


def _fits_reduce(task: Task) -> str:
    return "" if task.reduction is not None else "the stage holds no reduction"


def _suits_reduce(task: Task, options: Options) -> str:
    if not by_subgroups(options):
        return ""
    if _in_columns(task):
        return "neighbouring lanes have different columns, which no subgroup joins"
    return suits_subgroups(reduction_of(task).type)


def _lower_reduce(task: Task, options: Options) -> Iterator[Variant]:
    if _in_columns(task):
        return lower_columnwise(task)
    return lower_parts(task, subgroups=by_subgroups(options))


def _in_columns(task: Task) -> bool:
    return is_columnwise(task) and is_scalar_only(task.stage)


def _flash_faults(options: Options) -> Iterator[str]:
    return flash_tiling(options).faults()


def _tiling_faults(options: Options) -> Iterator[str]:
    return tiling_of(options).faults()


def _at_once(strategy: Strategy) -> Strategy:
    """Return a strategy that refuses recurrences."""

    def fits(task: Task) -> str:
        is_recurrence = task.stage.loop is not None
        return "the stage is a recurrence" if is_recurrence else strategy.fits(task)

    return replace(strategy, fits=fits)


_AT_ONCE: Final = map(
    _at_once,
    (
        Strategy("map", fits_map, _or_packed(_lower_map)),
        Strategy(
            "reduce",
            _fits_reduce,
            _lower_reduce,
            suits=_suits_reduce,
            shader_key=by_subgroups,
        ),
        Strategy(
            "rows",
            _plain(fits_rows),
            lower_rows,
            rows_run,
            suits=suits_rows,
            shader_key=row_options,
        ),
        Strategy(
            "ragged",
            _plain(fits_ragged),
            lower_ragged,
            suits=suits_ragged,
            shader_key=ragged_options,
        ),
        Strategy(
            "gemv",
            _plain(fits_gemv_run),
            lower_gemv,
            gemv_run,
            suits=suits_gemv,
            shader_key=settled_gemv,
        ),
        Strategy(
            "gemm",
            _plain(fits_gemm),
            lower_gemm,
            suits=suits_gemm,
            shader_key=tiling_of,
            faults=_tiling_faults,
        ),
        Strategy(
            "scatter",
            _plain(fits_scatter),
            lower_scatter,
            suits=suits_scatter,
            shader_key=scatter_options,
        ),
        Strategy("sort", _plain(fits_sort), lower_sort, sort_run),
        Strategy(
            "flash",
            _plain(fits_flash),
            lower_flash,
            flash_run,
            suits=suits_flash,
            requires=flash_requires,
            shader_key=flash_tiling,
            faults=_flash_faults,
        ),
        Strategy(
            "generic",
            fits_generic,
            _or_packed(lower_generic),
            suits=_suits_generic,
            shader_key=by_neighbours,
        ),
    ),
)

_EITHER: Final = (
    Strategy(
        "scan",
        fits_scan,
        lower_scan,
        suits=suits_scan,
        shader_key=scan_options,
        in_order=None,
    ),
)

_IN_ORDER: Final = (
    Strategy("fold", fits_fold, lower_fold, fold_run, in_order=True),
    Strategy("loop", fits_loop, lower_recurrence, in_order=True),
    Strategy("recur", fits_recur, lower_recurrence, in_order=True),
    Strategy("steps", fits_steps, lower_steps, in_order=True),
)


def _by_rank(strategy: Strategy) -> Strategy:
    """Return a strategy whose `max` and `min` compare floats by their ranks (`ranks.py`).

    `flash` has no need to: a score that is NaN makes the total of its row NaN.  `sort`
    compares integers alone.
    """
    if strategy.name in {"flash", "sort"}:
        return strategy

    def lower(task: Task, options: Options) -> Iterator[Variant]:
        return strategy.lower(ranked(task), options)

    return replace(strategy, lower=lower)


STRATEGIES: Final = {
    each.name: each for each in map(_by_rank, (*_AT_ONCE, *_EITHER, *_IN_ORDER))
}
