"""Workgroups share the terms of tiles where that takes less time, and not elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen_kernels.matmul import matmul_nt
from tests.compile import built


@pytest.mark.parametrize(
    ("m", "k", "n", "shared"),
    [
        (1544, 72, 3060, False),  # of few terms: on an H200 29 us so, 53 in shares
        (1024, 100, 1852, False),  # 18 and 36
        (1276, 132, 4044, False),  # 50 and 67
        (286, 728, 3546, True),  # 100 and 80
        (100, 4096, 4096, True),  # 350 and 124
        (2048, 2048, 2048, False),  # tiles that fill the device nearly once
    ],
)
def test_tiles_are_shared_where_that_pays(
    ctx: gpu.Context, m: int, k: int, n: int, *, shared: bool
) -> None:
    (choice,) = ctx.choices(matmul_nt, m=m, k=k, n=n)
    assert "stream" in choice.strategy
    assert len(choice.shaders) == 1 + shared


PRODUCT = """
kernel f(a: f32[m, k], b: f32[n, k]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[j, p];
}
schedule f { gemm tile(16, 32, 8) micro(4, 4) stream(3) }
"""


def test_device_and_host_agree_on_what_pays(ctx: gpu.Context) -> None:
    # 4 tiles for 3 workgroups: it pays from some number of terms on.  Whole numbers have
    # exact sums, so that a term too few or too many shows.
    random, found = np.random.default_rng(0), set[int]()
    with built(PRODUCT) as (kernel,):
        for k in (40, 300, 1000, 1500, 2000, 2500, 3001, 6000):
            a, b = (random.integers(-3, 4, (n, k)).astype("f4") for n in (20, 40))
            (c,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
            np.testing.assert_array_equal(c.numpy(), a @ b.T)
            (choice,) = ctx.backend.choices(kernel, {"m": 20, "n": 40, "k": k})
            found.add(len(choice.shaders))
    assert found == {1, 2}
