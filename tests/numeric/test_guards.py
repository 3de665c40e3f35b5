"""Every way to run a standard kernel is right, and touches nothing around its buffers.

It gives what the kernel's oracle gives, the same bits whatever lies there, and leaves
that alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pytest

from kerngen.runtime import Context
from kerngen.verify.guarded import PATTERNS, Guarded
from tests.budget import sampled, tonight
from tests.compile import built
from tests.language import meaning
from tests.language.cases import CASES, Array, Arrays, Inputs
from tests.language.cases import Case as Construct

from .cases import Arrays as Named
from .cases import Scalars
from .guarded_ways import (
    AWKWARD,
    FAULTS,
    FAULTY,
    LONG,
    SINGLE,
    Fault,
    Lengths,
    Run,
    faulty,
    sizes,
)
from .ways import Way, all_ways, some, ways

CONSTRUCT_SIZES = (5, 12, 67)
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


def hold(guarded: Guarded, run: Run, what: str) -> list[Array]:
    """Run a kernel between guard zones of each pattern; return its results, all alike."""
    results: list[Array] = []
    for pattern in PATTERNS:
        with guarded.under(pattern):
            got = [*run(guarded.ctx)]
        guarded.check(f"{what}, zones of {pattern.name}")
        results = results or got
        same = [a.tobytes() for a in got] == [a.tobytes() for a in results]
        assert same, f"{what}, zones of {pattern.name}: other bits"
    return results


def hold_way(guarded: Guarded, way: Way, given: Lengths = AWKWARD) -> None:
    """Hold a way to run a standard kernel at every size, and to its oracle."""
    for got, (arrays, scalars), where in held(guarded, way, given):
        way.check(got, arrays, scalars, where)


def held(
    guarded: Guarded, way: Way, given: Lengths = AWKWARD
) -> Iterator[tuple[list[Array], tuple[Named, Scalars], str]]:
    """Yield what a way gives at every size, where it touches nothing outside."""
    for lengths in sizes(way.case, given):
        rng = np.random.default_rng(5)
        arrays, scalars = way.draw(rng, lengths)
        run = partial(way.run, arrays=arrays, scalars=scalars)
        got = hold(guarded, run, f"{way} of about {lengths}")
        yield got, (arrays, scalars), f"of about {lengths}"


@pytest.mark.parametrize("way", list(some(all_ways(), most=1, but=("sort",))))
def test_it_is_right_and_touches_nothing_outside(guarded: Guarded, way: Way) -> None:
    hold_way(guarded, way)


@pytest.mark.nightly
@pytest.mark.parametrize("way", tonight(all_ways()), ids=str)
def test_nothing_is_touched_beside_one_element(guarded: Guarded, way: Way) -> None:
    hold_way(guarded, way, SINGLE)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", sampled(CASES, 9))
def test_no_construct_reaches_outside(
    guarded: Guarded, case: Construct, strategy: str
) -> None:
    """The language's other constructs: windows, gathers, several outputs."""
    with meaning.kernel_of(case, strategy) as kernel:
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
            # The sums along columns of 300 elements are of two parts.
            (scaled, {"m": 300, "n": 64}, [4 * 19200, 4 * 300, 4 * 64, 4 * 128]),
        ):
            way = list(ways(faulty(kernel)))[-1]
            arrays = way.case.arrays(np.random.default_rng(0), dims)
            with guarded.under(PATTERNS[0]):
                way.run(guarded.ctx, arrays, {})
            assert [leased.nbytes for leased in guarded.leased] == nbytes


@pytest.mark.nightly
def test_kernels_without_fault_pass(guarded: Guarded) -> None:
    with built(FAULTY) as kernels:
        for kernel in kernels:
            for way in ways(faulty(kernel)):
                assert [*held(guarded, way)]


@pytest.mark.parametrize("fault", sampled(FAULTS, 4))
def test_a_fault_is_caught(guarded: Guarded, fault: Fault) -> None:
    with built(FAULTY) as kernels:
        (kernel,) = (kernel for kernel in kernels if kernel.name == fault.kernel)
        fault.seed(kernel)
        with pytest.raises(AssertionError, match=fault.shows):
            [each for way in ways(faulty(kernel)) for each in held(guarded, way)]
