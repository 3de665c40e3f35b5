"""What the standard kernels' own schedules must not take away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import kerngen.runtime as gpu
from kerngen_kernels import half, matmul

PRODUCTS = [
    getattr(module, name)
    for module in (matmul, half)
    for name in module.__all__
    if name.startswith("matmul_") and not name.endswith("_reference")
]


@pytest.mark.parametrize(
    "product", PRODUCTS, ids=lambda f: f"{f.__module__}.{f.__name__}"
)
def test_a_product_of_one_row_is_no_tile(
    ctx: gpu.Context, product: Callable[..., object]
) -> None:
    """A tile of one row reads as much as a full one, many times as slowly."""
    for size in (64, 255, 2048):
        choice, *_ = ctx.choices(product, m=1, k=size, n=size)
        assert choice.strategy.partition("_")[0] in {"gemv", "rows"}
