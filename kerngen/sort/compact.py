"""Compaction of vectors: the places of elements that are not 0, and distinct elements.

Their number is known on the device only.  So that nothing waits for it, results are as
long as the input, and the number is a tensor beside them:

    nonzero of 0 7 0 5      places 1 3 4294967295 4294967295, number 2
    unique of 5 3 5 5       values 3 5 5 5, counts 1 3 0 0, number 2
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
    """Places in ascending order, then 4294967295; their number is a tensor of rank 0."""

    places: AnyTensor
    number: AnyTensor


class Unique(NamedTuple):
    """Distinct elements, ascending, with the count of each; their number, of rank 0.

    Behind the last distinct element, `values` repeat it, and `counts` are 0.
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
    """Return the distinct elements of a vector, ascending, with the count of each.

    All NaNs are equal, and come last; 0.0 and -0.0 are equal, as in NumPy.

    Raises:
        ArgumentError: If x is no tensor of f32, i32 or u32.
        ShapeError: If x is no vector.
    """
    x = check_vector("unique", "x", x)
    if not x.size:
        return Unique(x, *kernels.nonzero(x.ctx.empty((0,), u32)))
    # Equal elements are neighbours once sorted: those that differ from the one before begin
    # a run.
    ordered = sort(x)
    starts, number = kernels.nonzero(_BEGINS[x.element](ordered))
    return Unique(take(ordered, starts), kernels.run_lengths(starts), number)
