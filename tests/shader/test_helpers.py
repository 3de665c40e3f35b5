"""The helpers near zero and over their range, one and four at a time, against `math`."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.builtins.table import BUILTINS
from kerngen.shader.helpers import helpers
from tests.compile import built

POINTS = 50_000

RANGES: dict[str, tuple[Callable[[float], float], float, float]] = {
    "erf": (math.erf, -6.0, 6.0),
    "log1p": (math.log1p, -0.999, 60.0),
    "asinh": (math.asinh, -60.0, 60.0),
    "expm1": (math.expm1, -20.0, 20.0),
}


def points(low: float, high: float) -> NDArray[np.float32]:
    """Return points all over a range, and as many that crowd at zero."""
    random = np.random.default_rng(1)
    spread = random.uniform(low, high, POINTS)
    tiny = np.exp(random.uniform(math.log(1e-30), math.log(min(-low, high)), POINTS))
    return np.concatenate([spread, tiny, -tiny]).astype(np.float32)


@pytest.mark.parametrize("extra", [0, 1], ids=["vectors", "scalars"])
@pytest.mark.parametrize("name", sorted(RANGES))
def test_error_is_within_the_table(ctx: gpu.Context, name: str, extra: int) -> None:
    function, low, high = RANGES[name]
    x = np.resize(points(low, high), 3 * POINTS + extra)
    text = f"kernel f(x: f32[n]) -> y: f32[n] {{ y[i] = {name}(x[i]); }}"
    with built(text) as (kernel,):
        (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
        got = y.numpy().astype(np.float64)
    wanted = np.array([function(float(value)) for value in x])
    ulp = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    accuracy = BUILTINS[name].accuracy
    ulps = accuracy.ulps + accuracy.ulps_per_argument * np.abs(x.astype(np.float64))
    assert np.all(np.abs(got - wanted) <= accuracy.absolute + (ulps + 0.5) * ulp)
    # Near zero only a relative bound will do: that is what these functions are for.
    near = np.abs(x) < 1e-3
    assert np.all(np.abs(got - wanted)[near] <= 4 * ulp[near])


@pytest.mark.parametrize("extra", [0, 1], ids=["vectors", "scalars"])
@pytest.mark.parametrize("name", ["is_nan", "is_finite"])
def test_bit_tests(ctx: gpu.Context, name: str, extra: int) -> None:
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -np.nan, 3.4e38, 1e-45]
    x: NDArray[Any] = np.resize(np.array(special, np.float32), 36 + extra)
    text = (
        "kernel f(x: f32[n]) -> y: i32[n] "
        f"{{ y[i] = if {name}(x[i]) {{ 1 }} else {{ 0 }}; }}"
    )
    with built(text) as (kernel,):
        (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
        expected = np.isnan(x) if name == "is_nan" else np.isfinite(x)
        np.testing.assert_array_equal(y.numpy().astype(bool), expected)


@pytest.mark.parametrize("extra", [0, 1], ids=["vectors", "scalars"])
def test_bits(ctx: gpu.Context, extra: int) -> None:
    special = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3.4e38, 1.2e-38]
    x: NDArray[Any] = np.resize(np.array(special, np.float32), 36 + extra)
    text = "kernel f(x: f32[n]) -> y: u32[n] { y[i] = bits(x[i]); }"
    with built(text) as (kernel,):
        (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
        np.testing.assert_array_equal(y.numpy(), x.view(np.uint32))
        np.testing.assert_array_equal(kernel.reference(x), x.view(np.uint32))


@pytest.mark.parametrize("extra", [0, 1], ids=["vectors", "scalars"])
def test_remainders(ctx: gpu.Context, extra: int) -> None:
    """Only drivers that take negative numbers for large ones need the helper."""
    special = [0, 1, -1, 2, -2, 7, -7, 1000, -1000, 2**31 - 1, -(2**31)]
    x, y = (
        np.array(v).astype(np.int32)
        for v in zip(*product(special, special), strict=True)
    )
    x, y = x[: 120 + extra], y[: 120 + extra]
    text = "kernel f(x: i32[n], y: i32[n]) -> z: i32[n] { z[i] = x[i] % y[i]; }"
    with built(text) as (kernel,):
        (z,) = kernel.launch(ctx, (ctx.tensor(x), ctx.tensor(y)), (), (None,))
        expected = [int(math.fmod(a, b)) if b else 0 for a, b in zip(x, y, strict=True)]
        assert z.numpy().tolist() == expected


@pytest.mark.parametrize("extra", [0, 1], ids=["vectors", "scalars"])
def test_powers(ctx: gpu.Context, extra: int) -> None:
    """Of negative numbers too, as in C: drivers compute them by the logarithm."""
    bases = (-7.25, -2.0, -1.0, -0.5, 0.5, 1.0, 3.0, 6.5)
    exponents = (-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 5.0, 8.0)
    pairs = [*product(bases, exponents), *((0.0, y) for y in (0.0, 0.5, 1.0, 2.0))]
    x, y = np.array(pairs, np.float32)[: 88 + extra].T.copy()
    text = "kernel f(x: f32[n], y: f32[n]) -> z: f32[n] { z[i] = pow(x[i], y[i]); }"
    with built(text) as (kernel,):
        (z,) = kernel.launch(ctx, (ctx.tensor(x), ctx.tensor(y)), (), (None,))
        with np.errstate(invalid="ignore"):
            exact = np.power(x.astype(np.float64), y.astype(np.float64))
            np.testing.assert_allclose(kernel.reference(x, y), exact, rtol=1e-6)
        np.testing.assert_allclose(z.numpy(), exact, rtol=640 * 2.0**-23)


def test_built_ins_name_their_helpers() -> None:
    others = {"is_nan", "is_finite", "pow", "mod", "floor_div", "bits"}
    helped = {name: row.helper for name, row in BUILTINS.items() if row.helper}
    assert set(helped) == {*RANGES, *others}
    assert set(helpers()) == {
        *(helper.name for helper in helped.values()),
        *("infinity", "remainder", "nearest_f16", "to_i32", "to_u32"),
        *("float_rank", "unsigned_rank"),
        *("better", "best_of_four", "best_in_subgroup"),
        *("max_rank", "max_value", "min_rank", "min_value"),
        "affine_then",
    }
