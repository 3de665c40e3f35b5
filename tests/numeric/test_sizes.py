"""More workgroups than one dimension of a dispatch holds, and axes of length 0.

Inputs are small whole numbers: every sum is exact in float32, whatever its order, so
results are compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context
from kerngen.runtime.kernel import TensorSpec

from .cases import Arrays, standard_kernels
from .ways import Dims, Way, ways

MOST_GROUPS = 65535
MOST_BYTES = 2**27
"""WebGPU's default limit of a binding."""

KERNELS = {"relu", "gemv", "gemv_t", "column_sum", "matmul_nn", "matmul_tn"}
WAYS = [
    way
    for case in standard_kernels()
    if case.kernel.name in KERNELS
    for way in ways(case)
]


def length(spec: TensorSpec, dims: Dims) -> int:
    return prod(axis if isinstance(axis, int) else dims[axis] for axis in spec.axes)


def fits(way: Way, dims: Dims) -> bool:
    tensors = way.case.kernel.tensors
    return all(4 * length(spec, dims) <= MOST_BYTES for spec in tensors)


def groups(way: Way, dims: Dims) -> int:
    return max(dispatch.groups(dims) for dispatch in way.variant.dispatches)


def sizes_past_the_fold(way: Way) -> Iterator[Dims]:
    """Sizes with just more than `MOST_GROUPS` workgroups, one axis long, the rest short."""
    step = 1 if way.variant.when is None else 4
    for long in way.case.kernel.dims:
        low, high = 0, MOST_BYTES
        dims = dict.fromkeys(way.case.kernel.dims, step)
        while low + step < high:
            middle = (low + high) // (2 * step) * step
            enough = groups(way, dims | {long: middle}) > MOST_GROUPS
            low, high = (low, middle) if enough else (middle, high)
        found = dims | {long: high + step}
        if groups(way, found) > MOST_GROUPS and fits(way, found):
            yield found


PAST_THE_FOLD = [(way, dims) for way in WAYS for dims in sizes_past_the_fold(way)]


def whole_numbers(way: Way, dims: Dims) -> Arrays:
    rng = np.random.default_rng(0)
    inputs = (spec for spec in way.case.kernel.tensors if spec.access != "write")
    return {
        spec.name: rng.integers(-4, 5, length(spec, dims))
        .astype(np.float32)
        .reshape([a if isinstance(a, int) else dims[a] for a in spec.axes])
        for spec in inputs
    }


def test_strategies_reach_the_fold() -> None:
    """Aligned `map` is not here: so long a vector would not fit a binding."""
    reached = {(way.schedule.strategy, way.variant.name) for way, _ in PAST_THE_FOLD}
    assert reached >= {
        ("map", "edge"),
        ("generic", ""),
        ("gemv", "aligned"),
        ("gemv", "edge"),
        ("gemm", "edge"),
    }


@pytest.mark.parametrize(
    ("way", "dims"),
    [pytest.param(way, dims, id=f"{way} {dims}") for way, dims in PAST_THE_FOLD],
)
def test_workgroups_fold_into_two_dimensions(
    ctx: Context, way: Way, dims: Dims
) -> None:
    arrays = whole_numbers(way, dims)
    scalars = dict.fromkeys((spec.name for spec in way.case.kernel.scalars), 2.0)
    (actual,) = way.run(ctx, arrays, scalars)
    exact = {name: array.astype(np.float64) for name, array in arrays.items()}
    expected = way.case.oracle(*exact.values(), **scalars)
    assert np.array_equal(actual, expected)
