"""Long rows: the largest value and the sum of exp(value - it) in one pass (`rows/online.py`)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.compile import built

from .rows import run

KEPT: Final = """
kernel f(x: f32[m, n]) -> y: f32[m, n], top: f32[m], total: f32[m] {
    top[i] = max[j] VALUE;
    total[i] = sum[j] exp(VALUE - top[i]);
    y[i, j] = exp(VALUE - top[i]) / total[i];
}
schedule f { SCHEDULE }
"""
VALUE: Final = "0.5 * x[i, j]"
SCHEDULES: Final = (
    pytest.param("rows lanes(64)"),
    pytest.param("rows lanes(1024) subgroups(1)", marks=pytest.mark.nightly),
)


def softmax(value: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    with np.errstate(invalid="ignore"):
        top = value.max(1, initial=-np.inf)
        terms = np.exp(value - top[:, None])
        total = terms.sum(1)
        return terms / total[:, None], top, total


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_sums_follow_the_largest_value(ctx: gpu.Context, schedule: str) -> None:
    """Rising, falling and random values, and rows with values that are not finite.

    The shortest rows leave lanes without elements; those of 257 are no vectors.
    """
    text = KEPT.replace("VALUE", VALUE).replace("SCHEDULE", schedule)
    random = np.random.default_rng(7)
    with built(text) as (kernel,):
        for n in (0, 1, 4, 60, 257, 4096, 5000, 70_001):
            x = random.normal(scale=30.0, size=(7, n)).astype(np.float32)
            x[1].sort()
            x[2] = np.sort(x[2])[::-1]
            x[3] = -np.inf
            x[4, : n // 2] = -np.inf
            x[5, n // 2 :] = np.nan
            x[6, n // 3 :] = np.inf
            found = run(ctx, kernel, [x])
            for got, wanted in zip(found, softmax(0.5 * x.astype(float)), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-30)


THREE: Final = """
kernel f(x: f32[m, n], y: f32[m, n], z: f32[m, n]) -> total: f32[m] {
    let top[i] = max[j] (x[i, j] + y[i, j] + z[i, j]);
    total[i] = sum[j] exp(x[i, j] + y[i, j] + z[i, j] - top[i]);
}
schedule f { rows lanes(64) }
"""
"""Too many values for registers: no lane holds rows, however short."""


def test_rows_of_no_elements(ctx: gpu.Context) -> None:
    """The sum of none is 0, and not nothing times infinity."""
    with built(THREE) as (kernel,):
        for n in (0, 1, 4, 30, 700):
            x = np.arange(2 * n, dtype=np.float32).reshape(2, n)
            (found,) = run(ctx, kernel, [x, x, -x])
            _, _, wanted = softmax(x.astype(float))
            np.testing.assert_allclose(found, wanted, rtol=2e-5)


WRITTEN: Final = """
kernel f(mut x: f32[m, n]) -> total: f32[m] {
    let top[i] = max[j] x[i, j];
    x[i, j] *= 0.5;
    total[i] = sum[j] exp(x[i, j] - top[i]);
}
"""


@pytest.mark.parametrize("schedule", ["", "schedule f { rows lanes(64) }"])
def test_values_that_change_in_between(ctx: gpu.Context, schedule: str) -> None:
    with built(WRITTEN + schedule) as (kernel,):
        for m, n in ((5, 5001), (3, 17_000), (400, 17_000)):
            x = np.random.default_rng(n).normal(size=(m, n)).astype(np.float32)
            total = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))[0].numpy()
            terms = np.exp(0.5 * x.astype(float) - x.max(1)[:, None])
            np.testing.assert_allclose(total, terms.sum(1), rtol=2e-5)


TWO: Final = """
kernel f(x: f32[m, p, q], z: f32[m, p, q]) -> s: f32[m], t: f32[m], u: f32[m] {
    let a[i] = max[j, k] x[i, j, k];
    let b[i] = max[j, k] z[i, j, k];
    s[i] = sum[j, k] exp(x[i, j, k] - a[i]);
    t[i] = sum[j, k] exp(z[i, j, k] - b[i]);
    u[i] = s[i] + (sum[j, k] exp(x[i, j, k] - a[i]));
}
schedule f { rows lanes(8) }
"""


def test_two_sums_over_two_indices(ctx: gpu.Context) -> None:
    """Several rows share a workgroup."""
    with built(TWO) as (kernel,):
        for shape in ((5, 3, 700), (9, 40, 52)):
            x, z = np.random.default_rng(1).normal(size=(2, *shape)).astype(np.float32)
            found = run(ctx, kernel, [x, z])
            _, _, s = softmax(x.reshape(len(x), -1).astype(float))
            _, _, t = softmax(z.reshape(len(x), -1).astype(float))
            for got, wanted in zip(found, (s, t, 2 * s), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=2e-5)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        (KEPT.replace("VALUE", VALUE), 2),
        # What is subtracted is the largest of other values, and one pass more is needed.
        (KEPT.replace("exp(VALUE -", "exp(x[i, j] -").replace("VALUE", VALUE), 3),
        (KEPT.replace("= sum[j] exp", "= sum[j] 2.0 * exp").replace("VALUE", VALUE), 3),
        (KEPT.replace("sum[j]", "sum[j when j > 0]").replace("VALUE", VALUE), 3),
        (KEPT.replace("max[j]", "min[j]").replace("VALUE", VALUE), 3),
    ],
)
def test_which_sums_share_a_pass(text: str, loops: int) -> None:
    module = compile_text(text.replace("SCHEDULE", "rows lanes(64)"), "f.kern")
    (shader,) = (
        file.decode() for name, file in module.files.items() if name.endswith(".wgsl")
    )
    long = shader.partition("fn main(")[2].partition("@compute")[0]
    assert long.count("for (") == loops
