"""A candidate among the default schedules of a stage, and the guards of candidates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.ir.nodes import Binary, BinaryOp, Constant, DimValue, Expr, Extent, Index
from kerngen.ir.types import Scalar
from kerngen.schedule.task import Options


@final
@dataclass(frozen=True, slots=True)
class ScheduleChoice:
    """A strategy with its options, the guard under which it applies, and the reason for it.

    If the guard is None, it applies to every call.  It runs up to `together` stages, the
    first one included.
    """

    strategy: str
    reason: str
    guard: Expr | None = None
    options: Options = field(default_factory=dict)
    together: int = 1


def size_of(indices: tuple[Index, ...]) -> Expr:
    """Return the number of elements of a domain with an index or more, for a guard."""
    first, *rest = (index.extent for index in indices)
    total = extent_of(first)
    for extent in rest:
        total = Binary("*", total, extent_of(extent), Scalar.I32)
    return total


def extent_of(extent: Extent) -> Expr:
    """Return an axis length as an expression, for a guard."""
    if isinstance(extent, int):
        return Constant(extent, Scalar.I32)
    return DimValue(extent)


def both(one: Expr, other: Expr) -> Expr:
    """Return the guard that holds where both of two guards hold."""
    return Binary("and", one, other, Scalar.BOOL)


def either(one: Expr, other: Expr) -> Expr:
    """Return the guard that holds where at least one of two guards holds."""
    return Binary("or", one, other, Scalar.BOOL)


def compare(left: Extent | Expr, op: BinaryOp, right: int) -> Expr:
    """Return the guard that compares a length, or an expression, with a number by `op`."""
    side = extent_of(left) if isinstance(left, int | str) else left
    return Binary(op, side, Constant(right, Scalar.I32), Scalar.BOOL)
