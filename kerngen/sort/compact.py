"""Compaction: the elements that matter, side by side.

How many they are is known on the device alone: results are as long as the input, with
their number beside them, so that nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kerngen.runtime import f32, i32, u32
from kerngen.sort.radix import sort, take
from kerngen.sort.vectors import AnyTensor, check_vector
from kerngen_kernels import sort as kernels

_FLAGS: Final[Mapping[type, Callable[[Any], AnyTensor]]] = {
    f32: kernels.is_nonzero_f32,
    i32: kernels.is_nonzero_i32,
    u32: lambda x: x,
}
_BEGINS: Final[Mapping[type, Callable[[Any], AnyTensor]]] = {
    f32: kernels.begins_f32,
    i32: kernels.begins_i32,
    u32: kernels.begins_u32,
}


class Nonzero(NamedTuple):
    """Places in ascending order, then 4294967295; and how many there are, of rank 0."""

    places: AnyTensor
    number: AnyTensor


class Unique(NamedTuple):
    """Elements that differ, ascending, and how often each occurs; and how many differ.

    `values` behind the last of them repeat the last element, and `counts` are 0 there.
    """

    values: AnyTensor
    counts: AnyTensor
    number: AnyTensor


def nonzero(x: AnyTensor) -> Nonzero:
    """Return the places of the elements of a vector that are not 0.

        places, number = nonzero(flags)
        places.numpy()[: number.item()]

    Raises:
        ArgumentError: If x is no tensor of f32, i32 or u32.
        ShapeError: If x is no vector.
    """
    x = check_vector("nonzero", "x", x)
    return Nonzero(*kernels.nonzero(_FLAGS[x.element](x)))


def unique(x: AnyTensor) -> Unique:
    """Return the elements of a vector that differ, ascending, and how often they occur.

    All NaNs are one, the last, and both zeros are one, as in NumPy.

    Raises:
        ArgumentError: If x is no tensor of f32, i32 or u32.
        ShapeError: If x is no vector.
    """
    x = check_vector("unique", "x", x)
    if not x.size:
        return Unique(x, *kernels.nonzero(x.ctx.empty((0,), u32)))
    ordered = sort(x)
    starts, number = kernels.nonzero(_BEGINS[x.element](ordered))
    return Unique(take(ordered, starts), kernels.run_lengths(starts), number)
