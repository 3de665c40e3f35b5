"""More workgroups than one dimension of a dispatch holds, and axes of length 0.

Inputs are small whole numbers: every sum is exact in float32, whatever its order, so
results are compared bit for bit.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from math import prod

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.plan.size import evaluate
from kerngen.plan.tree import dispatches_in
from kerngen.runtime import Context
from kerngen.runtime.calls.kernel import TensorSpec
from tests.budget import is_night
from tests.compile import built, with_generic_schedules

from .cases import Arrays, Case, standard_kernels
from .domains import Dims
from .oracles import ORACLES
from .ways import Way, ways

MOST_GROUPS = 65535
FEW_GROUPS = 100
"""What a context's adapter is said to allow in a dimension, so that small sizes fold."""

MOST_BYTES = 2**27
"""WebGPU's default limit of a binding."""

KERNELS = {"relu", "gemv", "gemv_t", "column_sum", "matmul_nn"}
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
    return max(evaluate(d.groups, dims) for d in dispatches_in(way.way.variant.body))


def sizes_past_the_fold(way: Way, most: int) -> Iterator[Dims]:
    """Sizes with more than `most` workgroups, one axis long, the rest short."""
    short = way.suit(dict.fromkeys(way.case.kernel.dims, 1))
    for long in way.case.kernel.dims:
        lengths = range(short[long], MOST_BYTES, short[long])

        def count(length: int, long: str = long) -> int:
            return groups(way, short | {long: length})

        first = bisect(lengths, most, key=count)
        if first < len(lengths) and fits(way, found := short | {long: lengths[first]}):
            assert way.takes(found, {})
            yield found


def elements(way: Way, dims: Dims) -> int:
    return sum(length(spec, dims) for spec in way.case.kernel.tensors)


def past_the_fold(most: int) -> list[tuple[Way, Dims]]:
    """The ways that get there, each with its fewest elements; those with few first."""
    smallest = [
        (way, min(found, key=lambda dims: elements(way, dims)))
        for way in WAYS
        if (found := list(sizes_past_the_fold(way, most)))
    ]
    return sorted(smallest, key=lambda pair: elements(*pair))


PAST_FEW = [
    *{way.kind: (way, dims) for way, dims in past_the_fold(FEW_GROUPS)[::-1]}.values()
]
"""One way of each kind, with the fewest elements."""


def whole_numbers(way: Way, dims: Dims) -> Arrays:
    rng = np.random.default_rng(0)
    inputs = (spec for spec in way.case.kernel.tensors if spec.access != "write")
    return {
        spec.name: rng.integers(-4, 5, length(spec, dims))
        .astype(spec.element.DTYPE)
        .reshape([a if isinstance(a, int) else dims[a] for a in spec.axes])
        for spec in inputs
    }


def run_past_the_fold(ctx: Context, way: Way, dims: Dims) -> None:
    arrays = whole_numbers(way, dims)
    scalars = dict.fromkeys((spec.name for spec in way.case.kernel.scalars), 2.0)
    (actual,) = way.run(ctx, arrays, scalars)
    exact = {name: array.astype(np.float64) for name, array in arrays.items()}
    assert np.array_equal(actual, way.case.oracle(*exact.values(), **scalars))


@pytest.fixture(scope="module")
def narrow() -> Iterator[Context]:
    """A context on an adapter that allows few workgroups in a dimension."""
    limits = {"max-compute-workgroups-per-dimension": FEW_GROUPS}
    with gpu.open(adapter="software", limits=limits) as ctx:
        yield ctx


def test_strategies_reach_the_fold() -> None:
    strategies = ("map", "gemm", "gemv", "reduce")
    both = {(name, variant) for name in strategies for variant in ("edge", "aligned")}
    assert {way.kind for way, _ in PAST_FEW} >= both


@pytest.mark.parametrize(("way", "dims"), PAST_FEW, ids=str)
def test_workgroups_fold_into_two_dimensions(
    narrow: Context, way: Way, dims: Dims
) -> None:
    run_past_the_fold(narrow, way, dims)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("way", "dims"), past_the_fold(MOST_GROUPS) if is_night() else (), ids=str
)
def test_the_real_limit_folds(ctx: Context, way: Way, dims: Dims) -> None:
    """The aligned `map` and `gemm` are not here: such tensors would not fit a binding."""
    run_past_the_fold(ctx, way, dims)


def test_generic_folds_into_two_dimensions(ctx: Context) -> None:
    with built(with_generic_schedules("nn", ("column_sum",))) as kernels:
        (kernel,) = (kernel for kernel in kernels if kernel.name == "column_sum")
        way = next(ways(Case("nn", kernel, ORACLES["nn"]["column_sum"])))
        assert way.way.strategy.name == "generic"
        (dims,) = sizes_past_the_fold(way, MOST_GROUPS)
        run_past_the_fold(ctx, way, dims)
