"""Every case under every strategy that accepts it, and its reference, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.ir.strategies import OPTIONS
from kerngen.runtime.kernel import Kernel
from tests.language.cases import CASES, Array, Arrays, Case, Inputs
from tests.language.halves import HALVES
from tests.language.products import PRODUCTS
from tests.language.windows import WINDOWS
from tests.numeric.generated import built, unless_unfit

SMALL_TILES = "gemm tile(16, 32, 8) micro(4, 4)"
STRATEGIES = (
    "",
    *(name for name in OPTIONS if name != "gemm"),
    "gemv rows(3)",
    f"{SMALL_TILES} pad(1)",
    f"{SMALL_TILES} buffers(2) split(3)",
)
OPTIONAL = ("rows lanes(8)", "rows lanes(128) subgroups(1)", "reduce subgroups(1)")
SIZES = (1, 3, 64, 67)
LARGE = 130
"""What cuts terms in parts; where nothing does, it would take long and tell no more."""


def shown(case: Case, strategy: str) -> str:
    return f"{case}-{strategy.replace(' ', '-') or 'chosen'}"


TURNS = 3
"""A case takes one of so many strategies by default, beside the one chosen for it.

Most cases fit few strategies, and a strategy writes its shaders alike for all that it
fits: with every pair the default would take three times as long.
"""


def marks(case: int, strategy: int) -> list[pytest.MarkDecorator]:
    """Mark as nightly all pairs of a case and a strategy but those whose turn it is."""
    is_due = strategy == 0 or (case + strategy) % TURNS == 0
    return [] if is_due and strategy < len(STRATEGIES) else [pytest.mark.nightly]


ALL = [
    pytest.param(
        case, strategy, id=shown(case, strategy), marks=marks(number, position)
    )
    for number, case in enumerate((*CASES, *HALVES, *PRODUCTS, *WINDOWS))
    for position, strategy in enumerate((*STRATEGIES, *OPTIONAL))
]


def fitting(case: Case, strategy: str) -> str:
    """The case's text with a schedule for all the stages that the strategy fits."""
    return f"{case.text}\nschedule f {{ {strategy} }}" if strategy else case.text


@pytest.mark.parametrize(("case", "strategy"), ALL)
def test_schedules_give_what_numpy_gives(
    ctx: gpu.Context, case: Case, strategy: str
) -> None:
    with unless_unfit(strategy), built(fitting(case, strategy)) as (kernel,):
        for size in SIZES:
            check(ctx, case, kernel, size)
        if not strategy or "split" in strategy:
            check(ctx, case, kernel, LARGE)


def check(ctx: gpu.Context, case: Case, kernel: Kernel, size: int) -> None:
    """Compare what the device and what the reference give with what NumPy says."""
    arrays = case.arguments(Inputs(size), size)
    meaning: Callable[..., Arrays] = case.meaning
    meant = meaning(*arrays)
    ran = [*run(ctx, case, kernel, arrays)]
    referred = [*refer(case, kernel, arrays)]
    assert len(ran) == len(referred) == len(meant)
    for got, reference, wanted in zip(ran, referred, meant, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=False, err_msg=f"n = {size}")
        np.testing.assert_array_equal(reference, wanted, err_msg=f"n = {size}")
        assert got.shape == np.shape(reference) == np.shape(wanted)
        assert got.dtype == np.asarray(reference).dtype


def run(
    ctx: gpu.Context, case: Case, kernel: Kernel, arrays: Arrays
) -> Iterator[Array]:
    """Yield the tensors that change, then the outputs, from the device."""
    tensors = tuple(ctx.tensor(array) for array in arrays)
    scalars = tuple(scalar_values(case, kernel))
    outputs = [spec for spec in kernel.tensors if spec.access == "write"]
    made = kernel.launch(ctx, tensors, scalars, (None,) * len(outputs))
    for tensor, spec in zip(tensors, kernel.tensors, strict=False):
        if spec.access == "update":
            yield tensor.numpy()
    for tensor in made:
        yield tensor.numpy()


def scalar_values(case: Case, kernel: Kernel) -> Iterator[Any]:
    """Yield the scalars in order; the only default among the cases is 2.0."""
    for spec in kernel.scalars:
        yield case.scalars.get(spec.name, 2.0)


def refer(case: Case, kernel: Kernel, arrays: Arrays) -> Iterator[Array]:
    """Yield the same from the NumPy reference."""
    copies = [array.copy() for array in arrays]
    made = kernel.reference(*copies, **case.scalars)
    for array, spec in zip(copies, kernel.tensors, strict=False):
        if spec.access == "update":
            yield array
    if made is not None:
        yield from made if isinstance(made, tuple) else (made,)
