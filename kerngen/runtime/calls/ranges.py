"""Computed lengths of a call, and the checks that its subscripts stay inside axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kerngen.plan.hostmath import I32_MAX, wrap_i32
from kerngen.plan.size import Size, evaluate, holds, symbols
from kerngen.plan.text import figures
from kerngen.runtime.errors import ArgumentError, ShapeError
from kerngen.runtime.values.shapes import Shape

if TYPE_CHECKING:
    from kerngen.plan.tree import RangeCheck
    from kerngen.runtime.calls.kernel import Dims, Kernel

LONGEST: Final = I32_MAX
"""The length of the longest axis: indices are i32."""


def derive(kernel: Kernel, lengths: dict[str, int]) -> None:
    """Compute the kernel's derived dims, add them to `lengths`, and refuse invalid lengths.

    The kernel's requirements are checked first, as their messages explain more than a
    negative length.
    """
    # Symbols that generated Python computes, as by floats; sizes of the plan read them.
    if kernel.compute is not None:
        values = kernel.compute(lengths)
        lengths.update(zip(kernel.computed, map(int, values), strict=True))
    _check_requires(kernel, lengths)
    for dim in kernel.derived:
        value = evaluate(dim.value, lengths)
        if not 0 <= value <= LONGEST:
            raise ShapeError(
                f"{kernel.place}: the length '{dim.text}' is {value}; expected 0 to "
                f"{LONGEST}. Got {_known(kernel, lengths)}."
            )
        lengths[dim.name] = value


def _check_requires(kernel: Kernel, lengths: Mapping[str, int]) -> None:
    """Refuse lengths and scalars that don't meet a condition of the kernel's."""
    for each in kernel.requires:
        if holds(each.condition, lengths):
            continue
        # A condition with a dim is about shapes, any other one about scalars.
        names = {*symbols(each.condition)}
        refused = ShapeError if names & {*kernel.dims} else ArgumentError
        numbers = ", ".join(figures(each.condition, lengths))
        if names & {*kernel.computed}:
            numbers = f"got {_known(kernel, lengths)}"
        raise refused(f"{kernel.place} needs '{each.text}': {numbers}.")


def check_ranges(kernel: Kernel, lengths: Mapping[str, int]) -> None:
    """Refuse subscripts that leave their axis, for some value of their indices."""
    for check in kernel.checks:
        # An index around it has an empty range: nothing is read.
        if not all(shape_of(check.around, lengths)):
            continue
        least, greatest = _extremes(check, lengths)
        (length,) = shape_of((check.extent,), lengths)
        if least < 0 or greatest >= length:
            raise ShapeError(
                f"{kernel.place}: the subscript '{check.text}' of '{check.tensor}' goes "
                f"from {least} to {greatest}, but axis {check.axis} has length "
                f"{length}. Got {_known(kernel, lengths)}.{_hint(check, length)}"
            )


def check_gathers(kernel: Kernel, lengths: Mapping[str, int]) -> None:
    """Refuse gathers from an empty axis: there is no element to clamp to."""
    if is_zero(kernel, lengths):
        return
    for gather in kernel.gathers:
        (length,) = shape_of((gather.extent,), lengths)
        if length == 0 and all(shape_of(gather.around, lengths)):
            raise ShapeError(
                f"{kernel.place}: axis {gather.axis} of '{gather.tensor}' is gathered "
                f"from, and it is empty ({show_axis(kernel, gather.extent, lengths)})."
            )


def is_zero(kernel: Kernel, lengths: Mapping[str, int]) -> bool:
    """Whether a kernel is a gradient that is 0 everywhere: it sums only over empty tensors."""
    if kernel.gradient is None:
        return False
    # `from_` names the gradients that the kernel takes, of outputs of the forward kernel.
    summed = {own for _, own in kernel.gradient.from_}
    axes = (spec.axes for spec in kernel.inputs if spec.name in summed)
    return all(0 in shape_of(each, lengths) for each in axes)


def shape_of(axes: tuple[str | int, ...], lengths: Mapping[str, int]) -> Shape:
    """Return the lengths of axes, given as dim names or numbers."""
    return tuple(axis if isinstance(axis, int) else lengths[axis] for axis in axes)


def show_axis(kernel: Kernel, axis: str | int, lengths: Mapping[str, int]) -> str:
    """Return an axis with its length, if that is known, as text: `m=4`, `h - 4 = 5`."""
    if isinstance(axis, int):
        return str(axis)
    text = kernel.derived_texts.get(axis, axis)
    if axis not in lengths:
        return text
    equals = "=" if text.isidentifier() else " = "
    return f"{text}{equals}{lengths[axis]}"


def _extremes(check: RangeCheck, lengths: Dims) -> tuple[int, int]:
    """Return the least and the greatest value of a subscript.

    `2 * i - j + 3`, with i below 4 and j below 5, goes from 3 - 4 to 3 + 6.
    """
    least = greatest = _value(check.offset, lengths)
    for term in check.terms:
        (extent,) = shape_of((term.extent,), lengths)
        span = _value(term.coefficient, lengths) * (extent - 1)
        least, greatest = least + min(span, 0), greatest + max(span, 0)
    return least, greatest


def _hint(check: RangeCheck, length: int) -> str:
    """Return a hint about a bare index whose range may surprise."""
    if not check.text.isidentifier():
        return ""
    if check.is_guarded:
        return (
            " A bare index is not clamped, even where a condition guards it; "
            f"write '{check.text} + 0' to have it clamped there."
        )
    return " An axis of length 1 is not broadcast." if length == 1 else ""


def _value(size: Size, lengths: Dims) -> int:
    """Return the value of a size as shaders compute it: in i32, which wraps."""
    return wrap_i32(evaluate(size, lengths))


def _known(kernel: Kernel, lengths: Mapping[str, int]) -> str:
    """Return the dims and guard scalars of a call as text: `m=4, step=2`."""
    scalars = (name for name in kernel.guard_scalars if "." not in name)
    names = (*kernel.dims, *scalars)
    return ", ".join(show_axis(kernel, name, lengths) for name in names) or "no dims"
