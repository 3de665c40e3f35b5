"""Convolutions of 1 x 1: windows of one element read the image as a plain matrix.

`x[n, q, i * step + u * skip - edge]`, or 0 beyond the axis, is `x[n, q, i]` where the window
has one element (u is 0), `step` is 1 and `edge` is 0.  The reader of that form computes
neither bounds nor places; the shader tests the conditions at run time (`windows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, affine_form, as_literal
from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.types import Scalar
from kerngen.ir.walk import called, map_children, subscript_value
from kerngen.schedule.contraction import all_parts

_BESIDE: Final = identity_of("sum", Scalar.F32)


@final
@dataclass(frozen=True, slots=True)
class Pointwise:
    """The element that a factor reads where its windows have one element each.

    The factor is that element in calls in which all of these hold:

    - `numbers`: integers of the call have the values given with them
    - `single`: the lengths are 1
    - `within`: of each pair of lengths, the first is at most the second
    """

    element: ir.Load
    numbers: tuple[tuple[ir.Expr, int], ...]
    single: tuple[ir.Extent, ...]
    within: tuple[tuple[ir.Extent, ir.Extent], ...]


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """A subscript of a window, such as `i * step + u`.

    - `form`: its affine form
    - `index`: its only index that is not summed over, `i`
    - `axis`: the length of the axis that it subscripts
    """

    form: AffineForm
    index: ir.Index
    axis: ir.Extent


_Places: TypeAlias = Sequence[_Place]


def pointwise_of(
    factor: ir.Expr, over: tuple[ir.Index, ...], function: Callable[[str], ir.Function]
) -> Pointwise | None:
    """Return the element that a factor in windows is for windows of one element, or None.

    The factor must be a read in windows that is 0 outside of the axes.
    """
    match factor:
        case ir.Select(condition, ir.Load() as load, otherwise) if otherwise == _BESIDE:
            found = [*_places(load, over)]
        case _:
            return None
    places = [place for place in found if place]
    parts = all_parts(_without_calls(condition, function), holds=True)
    if len(places) < len(found) or not all(
        holds and _is_met(part, places) for part, holds in parts
    ):
        return None
    subscripts = tuple(
        own if isinstance(own, ir.IndexValue) else ir.IndexValue(place.index)
        for own, place in zip(load.subscripts, places, strict=True)
    )
    moved = [place for place in places if place.form != _bare(place.index)]
    if not moved or any(index in over for index in places[0].form.terms):
        # A sum over the first axis, which is that of images, is a gradient by a kernel:
        # its windows have as many elements as the image.
        return None
    return Pointwise(
        ir.Load(load.tensor, subscripts, load.path),
        tuple(dict.fromkeys(each for place in moved for each in _numbers(place))),
        tuple(i.extent for x in moved for i in x.form.terms if i != x.index),
        tuple((x.index.extent, x.axis) for x in moved if x.index.extent != x.axis),
    )


def _places(load: ir.Load, over: tuple[ir.Index, ...]) -> Iterator[_Place | None]:
    """Yield the place on each axis; None for a subscript that no window has."""
    for subscript, axis in zip(load.subscripts, load.tensor.extents, strict=True):
        form = affine_form(subscript_value(subscript))
        yield _place(subscript, form, axis, over) if form else None


def _place(
    subscript: ir.Subscript,
    form: AffineForm,
    axis: ir.Extent,
    over: tuple[ir.Index, ...],
) -> _Place | None:
    if isinstance(subscript, ir.IndexValue):
        return _Place(form, subscript.index, axis)
    own = [index for index in form.terms if index not in over]
    literals = [as_literal(form.terms[index]) for index in own], as_literal(form.offset)
    if len(own) != 1 or literals[0][0] not in (None, 1) or literals[1] not in (None, 0):
        return None
    return _Place(form, own[0], axis)


def _bare(index: ir.Index) -> AffineForm | None:
    return affine_form(ir.IndexValue(index))


def _numbers(place: _Place) -> Iterator[tuple[ir.Expr, int]]:
    """Yield the numbers of a form that must have a value, and that value."""
    each = ((place.form.terms[place.index], 1), (place.form.offset, 0))
    return (pair for pair in each if as_literal(pair[0]) is None)


def _without_calls(expr: ir.Expr, function: Callable[[str], ir.Function]) -> ir.Expr:
    if isinstance(expr, ir.FunctionCall):
        expr = called(function(expr.function), expr.arguments)
    return map_children(expr, lambda part: _without_calls(part, function))


def _is_met(part: ir.Expr, places: _Places) -> bool:
    """Whether a condition holds wherever each place equals its index, which is on its axis."""
    match part:
        case ir.Binary(">=", left, ir.Constant(0)):
            return any(affine_form(left) == place.form for place in places)
        case ir.Binary("<", left, ir.DimValue(name)):
            own = [x for x in places if x.form == affine_form(left)]
            return any(place.axis == name for place in own)
        case _:
            return constant_value(part) is True
