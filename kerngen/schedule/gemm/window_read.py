"""Reads in windows: places that are sums of an index of the result and one of the reduction.

A convolution reads `x[n, q, i * step + u * skip - edge, j * step + v * skip - edge]`, or 0
beyond the axes.  Each place is a part that the position in the result fixes, which is
computed before the loop over terms, and a part that the term fixes, which is computed once
for all elements of a term:

    i * step + u * skip - edge    =    (i * step - edge)    +    (u * skip)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, affine_form
from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.types import Scalar
from kerngen.ir.walk import called, map_children, subscript_value
from kerngen.schedule.contraction import all_parts

Divisor: TypeAlias = ir.UniformValue | ir.Constant

_PADDING: Final = identity_of("sum", Scalar.F32)


@final
@dataclass(frozen=True, slots=True)
class WindowAxis:
    """The places that a factor reads of one axis of its tensor.

    - `place`: the affine form of the place
    - `divisor`: an integer that the place is divided by, if any, as the stride of a convolution
      in its gradient; the factor is 0 where a remainder is left
    - `extent`: the length of the axis
    - `guarded`: whether the place may lie beyond the axis, where the factor is 0
    """

    place: AffineForm
    divisor: Divisor | None
    extent: ir.Extent
    guarded: bool


@final
@dataclass(frozen=True, slots=True)
class WindowRead:
    """A factor that is an element of `tensor`, read at the places of its axes."""

    tensor: ir.Tensor
    axes: tuple[WindowAxis, ...]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """The integers that places are divided by, without repeats."""
        found = (axis.divisor for axis in self.axes if axis.divisor is not None)
        return tuple(dict.fromkeys(found))

    @property
    def undivided(self) -> WindowRead:
        """The read where all divisors are 1."""
        axes = tuple(replace(axis, divisor=None) for axis in self.axes)
        return replace(self, axes=axes)


def window_read(
    factor: ir.Expr, function: Callable[[str], ir.Function]
) -> WindowRead | None:
    """Return a factor as a read in windows, or None if it is another expression.

    It must be a read at affine places, or such a read under the condition that all places
    which may lie beyond their axes lie on them, and 0 otherwise.  The condition must have, for
    each of these, `place >= 0` and `place < length`, with the length of its own axis, and
    `place % divisor == 0` if it is divided; and nothing else.
    """
    match factor:
        case ir.Load() as load:
            conditions: list[ir.Expr] = []
        case ir.Select(condition, ir.Load() as load, otherwise) if (
            otherwise == _PADDING
        ):
            parts = [*all_parts(_without_calls(condition, function), holds=True)]
            if not all(holds for _, holds in parts):
                return None
            conditions = [part for part, _ in parts if constant_value(part) is not True]
        case _:
            return None
    if load.path or not isinstance(load.tensor.element, Scalar):
        return None
    met = [_part(condition) for condition in conditions]
    axes = [*_axes(load, met)]
    needed = [part for axis in axes if axis for part in _bounds(axis)]
    if None in axes or any(part not in needed for part in met):
        return None
    return WindowRead(load.tensor, tuple(axis for axis in axes if axis))


# A part of a condition, as the place, its divisor, and what must hold: ">= 0", "< length" with
# the length, or "%" for a place that the divisor divides.
_Part: TypeAlias = tuple[AffineForm, Divisor | None, str, ir.Extent]


def _axes(load: ir.Load, met: list[_Part | None]) -> Iterator[WindowAxis | None]:
    """Yield the axes that are read; None where a place may be clamped to its axis."""
    for subscript, extent in zip(load.subscripts, load.tensor.extents, strict=True):
        place, divisor = _place(subscript_value(subscript))
        if place is None:
            yield None
            continue
        axis = WindowAxis(place, divisor, extent, guarded=True)
        if all(part in met for part in _bounds(axis)):
            yield axis
        elif isinstance(subscript, ir.Clamped) or divisor is not None:
            yield None
        else:
            yield WindowAxis(place, divisor, extent, guarded=False)


def _bounds(axis: WindowAxis) -> Iterator[_Part]:
    """Yield the parts of the condition that a place lies on its axis."""
    if not axis.guarded:
        return
    yield axis.place, axis.divisor, ">= 0", ""
    yield axis.place, axis.divisor, "< length", axis.extent
    if axis.divisor is not None:
        yield axis.place, axis.divisor, "%", ""


def _part(condition: ir.Expr) -> _Part | None:
    match condition:
        case ir.Binary(">=", left, ir.Constant(0)):
            what, extent = ">= 0", ""
        case ir.Binary("<", left, ir.DimValue(name)):
            what, extent = "< length", name
        case ir.Binary("==", ir.Binary("%", dividend, divisor), ir.Constant(0)):
            what, extent = "%", ""
            left = ir.Binary("/", dividend, divisor, dividend.type)
        case _:
            return None
    # As u32, a negative place is a large one.
    place, by = _place(left)
    if place is None or left.type is not Scalar.I32:
        return None
    return place, by, what, extent


def _place(value: ir.Expr) -> tuple[AffineForm | None, Divisor | None]:
    """Return the affine form of a place, and the integer that it is divided by, if any."""
    whole = affine_form(value)
    match value:
        case ir.Binary("/", dividend, ir.UniformValue() | ir.Constant() as divisor):
            if whole is None and divisor.type is Scalar.I32 and not _has_path(divisor):
                return affine_form(dividend), divisor
        case _:
            pass
    return whole, None


def _has_path(divisor: Divisor) -> bool:
    """Whether an integer is a member of a struct."""
    return isinstance(divisor, ir.UniformValue) and bool(divisor.path)


def _without_calls(expr: ir.Expr, function: Callable[[str], ir.Function]) -> ir.Expr:
    if isinstance(expr, ir.FunctionCall):
        expr = called(function(expr.function), expr.arguments)
    return map_children(expr, lambda part: _without_calls(part, function))
