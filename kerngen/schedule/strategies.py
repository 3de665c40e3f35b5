"""The strategies: one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, final

from kerngen.schedule.columnwise import lower_columnwise
from kerngen.schedule.gemm import fits_gemm, lower_gemm
from kerngen.schedule.gemv import fits_gemv, lower_gemv, suits_gemv
from kerngen.schedule.orientation import is_columnwise
from kerngen.schedule.parts import lower_parts
from kerngen.schedule.per_element import (
    fits_generic,
    fits_map,
    lower_generic,
    lower_map,
)
from kerngen.schedule.plain import WITH_VECTORS, is_plain
from kerngen.schedule.program import Variant
from kerngen.schedule.rows import covers_rows, fits_rows, lower_rows
from kerngen.schedule.task import Options, Task


def _one(task: Task) -> int:
    """Most strategies run one stage."""
    del task
    return 1


def _any_options(task: Task, options: Options) -> str:
    """With most strategies, what fits does so whatever the options."""
    del task, options
    return ""


@final
@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to run stages.

    `fits` says why a stage does not suit it, or nothing; `lower` yields the variants of
    one that does, one of which takes any size.  `covers` says how many stages those
    run, the given one and those after it.  `suits` says of a stage that fits why it does
    not do so with some options.
    """

    name: str
    fits: Callable[[Task], str]
    lower: Callable[[Task, Options], Iterator[Variant]]
    covers: Callable[[Task], int] = _one
    suits: Callable[[Task, Options], str] = _any_options

    def refusal(self, task: Task, options: Options) -> str:
        """Say why a stage can't run so, with these options; empty if it can."""
        return self.fits(task) or self.suits(task, options)


def _plain(fits: Callable[[Task], str]) -> Callable[[Task], str]:
    """Return `fits` for a strategy of scalars."""

    def check(task: Task) -> str:
        return fits(task) if is_plain(task.stage) else WITH_VECTORS

    return check


def _fits_reduce(task: Task) -> str:
    return "" if task.reduction is not None else "the stage holds no reduction"


def _lower_reduce(task: Task, options: Options) -> Iterator[Variant]:
    del options
    columns = is_columnwise(task) and is_plain(task.stage)
    return lower_columnwise(task) if columns else lower_parts(task)


STRATEGIES: Final = {
    strategy.name: strategy
    for strategy in (
        Strategy("map", fits_map, lower_map),
        Strategy("reduce", _fits_reduce, _lower_reduce),
        Strategy("rows", _plain(fits_rows), lower_rows, covers_rows),
        Strategy("gemv", _plain(fits_gemv), lower_gemv, suits=suits_gemv),
        Strategy("gemm", _plain(fits_gemm), lower_gemm),
        Strategy("generic", fits_generic, lower_generic),
    )
}
