"""Subscripts whose offset is arithmetic of lengths and scalars, on the device, to NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kerngen
import kerngen.runtime as gpu

OFFSETS = (
    *("p + q", "p - q", "p * (q + 1)", "-(q - p)", "n / 8 + p", "i32(r) + q"),
    "i32(r * 2 - 3)",
)
"""What is added to an index: with // for /, Python has the same meaning."""

P, Q, R, N, M = 5, 3, 2, 40, 9

KERNELS = "\n".join(
    f"kernel f{number}(x: f32[n], z: f32[m], p: i32, q: i32, r: u32) -> y: f32[m] "
    f"{{ y[i] = x[i + ({offset})] + z[i]; }}"
    for number, offset in enumerate(OFFSETS)
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> object:
    file: Path = tmp_path_factory.mktemp("subscripts") / "offsets.kern"
    file.write_text(KERNELS, "utf-8")
    return kerngen.load(file)


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_offset_is_added(ctx: gpu.Context, kernels: object, offset: str) -> None:
    function = getattr(kernels, f"f{OFFSETS.index(offset)}")
    x, z = np.arange(N, dtype=np.float32), np.full(M, 0.5, np.float32)
    result = function(ctx.tensor(x), ctx.tensor(z), p=P, q=Q, r=R).numpy()
    named = {"p": P, "q": Q, "r": R, "n": N, "i32": int}
    first = eval(offset.replace("/", "//"), named)
    assert (result == x[first : first + M] + 0.5).all()
