"""Choose schedules where the user has not: what suits a stage, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, final

from kerngen.ir.nodes import Binary, Constant, DimValue, Expr, Extent
from kerngen.ir.types import Scalar
from kerngen.schedule.cooperation import reduction_of
from kerngen.schedule.gemm import fits_gemm
from kerngen.schedule.gemv import fits_gemv
from kerngen.schedule.orientation import is_columnwise, is_contiguous_at_all
from kerngen.schedule.task import Options, Task

SHORT_ROW: Final = 32
"""Below this many terms, a workgroup per row is mostly idle lanes."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy with its options, when it applies, and why it was chosen."""

    strategy: str
    reason: str
    guard: Expr | None = None
    options: Options = field(default_factory=dict)


def default_choices(task: Task) -> Iterator[Choice]:
    """Yield the compiler's own schedules for a stage; the last has no guard.

    All of them stay within WebGPU's default limits.
    """
    if task.reduction is None:
        yield Choice("map", "the stage holds no reduction")
        return
    if not fits_gemm(task):
        if not fits_gemv(task):
            one_row = _compare(task.domain[-2].extent, "==", 1)
            yield Choice(
                "gemv", "a product with one row reads the matrix once", one_row
            )
        yield Choice("gemm", "a product of two matrices")
        return
    if not fits_gemv(task):
        yield Choice("gemv", "a product of a matrix and a vector")
        return
    if not is_contiguous_at_all(task):
        yield Choice("generic", "nothing is read in runs along memory")
        return
    if task.domain and not is_columnwise(task):
        short = _compare(_terms(task), "<", SHORT_ROW)
        yield Choice("generic", f"rows below {SHORT_ROW} terms", short)
    yield Choice("reduce", "a reduction over contiguous memory")


def _terms(task: Task) -> Expr:
    """Return the number of terms of the stage's reduction."""
    first, *rest = (index.extent for index in reduction_of(task).indices)
    total = _extent(first)
    for extent in rest:
        total = Binary("*", total, _extent(extent), Scalar.I32)
    return total


def _extent(extent: Extent) -> Expr:
    if isinstance(extent, int):
        return Constant(extent, Scalar.I32)
    return DimValue(extent)


def _compare(left: Extent | Expr, op: str, right: int) -> Expr:
    side = _extent(left) if isinstance(left, int | str) else left
    bound = Constant(right, Scalar.I32)
    match op:
        case "==":
            return Binary("==", side, bound, Scalar.BOOL)
        case _:
            return Binary("<", side, bound, Scalar.BOOL)
