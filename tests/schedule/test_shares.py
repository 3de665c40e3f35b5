"""Workgroups share the terms of tiles where that takes less time, and not elsewhere."""

from __future__ import annotations

import pytest

import kerngen.runtime as gpu
from kerngen_kernels.matmul import matmul_nt


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
