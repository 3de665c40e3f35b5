"""No schedule touches what lies around its buffers.

Every way to run a standard kernel gives the same bits whatever lies there, and leaves
it alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pytest

from kerngen.runtime import Context
from kerngen.verify.guarded import PATTERNS, Guarded
from tests.compile import built
from tests.language import meaning
from tests.language.cases import CASES, Array, Arrays, Inputs
from tests.language.cases import Case as Construct

from .guarded_ways import (
    AWKWARD,
    FAULTS,
    FAULTY,
    LONG,
    SINGLE,
    WAYS,
    Fault,
    Lengths,
    Run,
    faulty,
    sizes,
)
from .ways import Way, some, ways

CONSTRUCT_SIZES = (5, 12, 67)
CONSTRUCTS = [
    pytest.param(case, marks=[] if number % 2 else [pytest.mark.nightly], id=str(case))
    for number, case in enumerate(CASES)
]
"""Each second one by default: the shaders of the others are like a neighbour's."""
STRATEGIES = (
    pytest.param("", id="chosen"),
    pytest.param("generic", marks=pytest.mark.nightly, id="generic"),
)


@pytest.fixture(scope="module")
def guarded(ctx: Context) -> Guarded:
    """A context on a device of its own, of the adapter of `ctx`, with guard zones."""
    device = ctx.device
    own = device.adapter.request_device_sync(required_features=list(device.features))
    return Guarded(own)


def hold(guarded: Guarded, run: Run, what: str) -> None:
    """Run a kernel amid every pattern, and compare."""
    results: list[list[bytes]] = []
    for pattern in PATTERNS:
        with guarded.under(pattern):
            results.append([array.tobytes() for array in run(guarded.ctx)])
        guarded.check(f"{what} amid {pattern.name}")
        assert results[-1] == results[0], f"{what} amid {pattern.name}: other bits"


def hold_ways(
    guarded: Guarded, several: Iterable[Way], given: Lengths = AWKWARD
) -> None:
    """Hold each way to run a kernel at every size."""
    for way in several:
        for lengths in sizes(way.case, given):
            rng = np.random.default_rng(5)
            arrays, scalars = way.draw(rng, lengths)
            run = partial(way.run, arrays=arrays, scalars=scalars)
            hold(guarded, run, f"{way} of about {lengths}")


@pytest.mark.parametrize("way", list(some(WAYS, most=1)))
def test_nothing_is_touched_outside(guarded: Guarded, way: Way) -> None:
    hold_ways(guarded, [way])


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_nothing_is_touched_beside_one_element(guarded: Guarded, way: Way) -> None:
    hold_ways(guarded, [way], SINGLE)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CONSTRUCTS)
def test_no_construct_reaches_outside(
    guarded: Guarded, case: Construct, strategy: str
) -> None:
    """The language's other constructs: windows, gathers, several outputs."""
    with built(meaning.fitting(case, strategy)) as (kernel,):
        for size in CONSTRUCT_SIZES:
            arrays = case.arguments(Inputs(size), size)

            def run(context: Context, arrays: Arrays = arrays) -> Iterable[Array]:
                return meaning.run(context, case, kernel, arrays)

            hold(guarded, run, f"{case} of {size}")


def test_every_buffer_is_guarded(guarded: Guarded) -> None:
    """Arguments, outputs, temporaries and scratch: all that a shader may store to."""
    with built(FAULTY) as (_, _, least, scaled, *_):
        for kernel, dims, nbytes in (
            (least, {"n": LONG}, [4 * LONG, 4, 4 * 3]),
            (scaled, {"m": 3, "n": 5}, [4 * 15, 4 * 3, 4 * 5, 4 * 5]),
        ):
            way = list(ways(faulty(kernel)))[-1]
            arrays = way.case.arrays(np.random.default_rng(0), dims)
            with guarded.under(PATTERNS[0]):
                way.run(guarded.ctx, arrays, {})
            assert [leased.nbytes for leased in guarded.leased] == nbytes


def test_kernels_without_fault_pass(guarded: Guarded) -> None:
    with built(FAULTY) as kernels:
        for kernel in kernels:
            hold_ways(guarded, ways(faulty(kernel)))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_caught(guarded: Guarded, fault: Fault) -> None:
    with built(FAULTY) as kernels:
        (kernel,) = (kernel for kernel in kernels if kernel.name == fault.kernel)
        fault.seed(kernel)
        with pytest.raises(AssertionError, match=fault.shows):
            hold_ways(guarded, ways(faulty(kernel)))
