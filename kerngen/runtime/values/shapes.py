"""Shapes: the forms that users may write, and arithmetic on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import TypeAlias

from kerngen.runtime.errors import ShapeError

Shape: TypeAlias = tuple[int, ...]


def normalise_shape(shape: int | Sequence[int]) -> Shape:
    """Return a shape as a tuple of lengths; an integer is the length of a rank-1 shape."""
    return _without_negative(_integers(shape))


def _without_negative(lengths: Shape) -> Shape:
    if lengths and min(lengths) < 0:
        raise ShapeError(f"A shape has no negative lengths, got {lengths}.")
    return lengths


def resolve_shape(shape: int | Sequence[int], size: int) -> Shape:
    """Return a new shape for `size` elements; one length may be -1, as in NumPy."""
    wanted = _integers(shape)
    if wanted.count(-1) > 1:
        raise ShapeError(f"Only one length of a shape can be -1, got {wanted}.")
    if -1 in wanted:
        rest = math.prod(length for length in wanted if length != -1)
        if rest == 0 or size % rest:
            raise ShapeError(f"{size} elements do not fill the shape {wanted}.")
        wanted = tuple(size // rest if length == -1 else length for length in wanted)
    if math.prod(_without_negative(wanted)) != size:
        raise ShapeError(f"{size} elements do not fit the shape {wanted}.")
    return wanted


def _integers(shape: int | Sequence[int]) -> Shape:
    try:
        # `tuple` first: the check of an abstract class takes longer than the rest of a view.
        if isinstance(shape, (tuple, Sequence)):
            return tuple(map(index, shape))
        return (index(shape),)
    except TypeError:
        raise ShapeError(f"A shape is a tuple of integers, got {shape!r}.") from None


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple of `multiple` that is no less than `value`."""
    return -(-value // multiple) * multiple
