"""The partial derivatives of built-ins, against differences in float64 and PyTorch.

The points are drawn from where the function's accuracy holds; its corners, and where
arguments are equal, are among them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from kerngen.ir.builtins import BUILTINS
from kerngen.ir.types import Scalar
from kerngen.runtime.kernel import Kernel
from tests.language.partials import check_partials, computed, drawn, kernels_of

ROWS = {name: row for name, row in BUILTINS.items() if row.partials}


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return kernels_of(ROWS.values())


@pytest.mark.parametrize("name", ROWS)
def test_partials_are_what_differences_are(
    kernels: dict[str, Kernel], name: str
) -> None:
    check_partials(ROWS[name], kernels[name])


def test_what_has_a_value_of_f32_has_partials() -> None:
    for name, row in BUILTINS.items():
        results = {overload.result for overload in row.overloads}
        assert (row.partials is not None) == (Scalar.F32 in results), name
        assert row.partials is None or len(row.partials) == row.arity


KNOWN: dict[str, list[tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "smoothstep": [
        ((1.0, 3.0, 1.0), (0.0, 0.0, 0.0)),
        ((1.0, 3.0, 3.0), (0.0, 0.0, 0.0)),
        ((1.0, 3.0, 9.0), (0.0, 0.0, 0.0)),
        ((1.0, 3.0, 2.0), (-0.375, -0.375, 0.75)),
    ],
    "pow": [
        ((0.0, 2.0), (0.0, 0.0)),
        ((0.0, 1.0), (1.0, 0.0)),
        ((0.0, 0.0), (0.0, 0.0)),
        ((0.0, 0.5), (np.inf, 0.0)),
        ((-2.0, 3.0), (12.0, np.nan)),
    ],
    "clamp": [
        ((2.0, 2.0, 2.0), (0.0, 0.5, 0.5)),
        ((2.0, 2.0, np.inf), (0.5, 0.5, 0.0)),
    ],
    "max": [((np.inf, np.inf), (0.5, 0.5)), ((-np.inf, 1.0), (0.0, 1.0))],
    "sqrt": [((0.0,), (np.inf,))],
}
"""Partials at points where differences are none: by hand, and as PyTorch has them."""


@pytest.mark.parametrize("name", KNOWN)
def test_partials_where_differences_are_none(
    kernels: dict[str, Kernel], name: str
) -> None:
    points, wanted = (np.array(each) for each in zip(*KNOWN[name], strict=True))
    with np.errstate(all="ignore"):
        _, *partials = computed(kernels[name], points)
    np.testing.assert_allclose(np.stack(partials, -1), wanted, rtol=1e-12)


SAME_IN_TORCH: Final = (
    "abs sign floor ceil round trunc sqrt exp exp2 log log2 pow sin cos tan asin acos "
    "atan atan2 sinh cosh tanh asinh acosh atanh erf log1p expm1 clamp"
)
IN_TORCH: Final = {name: name for name in SAME_IN_TORCH.split()} | {
    "min": "minimum",
    "max": "maximum",
    "fract": "frac",
    "inverseSqrt": "rsqrt",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "mix": "lerp",
}
"""What PyTorch calls functions that it has."""


@pytest.mark.torch
@pytest.mark.parametrize("name", IN_TORCH)
def test_partials_are_those_of_torch(kernels: dict[str, Kernel], name: str) -> None:
    import torch

    # PyTorch's clamp gives all of a tie to the number, and nothing to the bound.
    points = drawn(ROWS[name], with_ties=name != "clamp")
    inputs = [torch.tensor(column, requires_grad=True) for column in points.T]
    function = getattr(torch, IN_TORCH[name])
    function(*inputs).sum().backward()
    _, *partials = computed(kernels[name], points)
    for each, got in zip(inputs, partials, strict=True):
        wanted = each.grad.numpy() if each.grad is not None else 0.0 * got
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-14)
