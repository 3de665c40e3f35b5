"""Infinity: written as `inf`, and what `max` and `min` of nothing give, by every way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen
import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.backend import Kind
from kerngen.source.diagnostic import CompileError
from tests.budget import sampled
from tests.compile import built

ROWS = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = KIND[j] x[i, j]; }"
COLUMNS = "kernel f(x: f32[m, n]) -> y: f32[n] { y[j] = KIND[i] x[i, j]; }"
ALL = "kernel f(x: f32[m, n]) -> y: f32[] { y = KIND[i, j] x[i, j]; }"
WAYS = {
    "rows of the default": (ROWS, ""),
    "rows, one by one": (ROWS, "generic"),
    "rows by few lanes": (ROWS, "rows lanes(4)"),
    "rows by subgroups": (ROWS, "rows subgroups(1)"),
    "rows in parts": (ROWS, "reduce"),
    "columns of the default": (COLUMNS, ""),
    "columns, one by one": (COLUMNS, "generic"),
    "columns in parts": (COLUMNS, "reduce"),
    "all of the default": (ALL, ""),
    "all in parts": (ALL, "reduce"),
    "all by subgroups": (ALL, "reduce subgroups(1)"),
}
AXES = {ROWS: 1, COLUMNS: 0, ALL: None}
SHAPES = ((2, 0), (0, 2), (3, 5), (2, 4100), (4100, 4))


@pytest.mark.parametrize(
    ("way", "kind"),
    sampled(zip(WAYS, cycle(("max", "min")), strict=False), 3, "-".join),
)
def test_extremes_of_nothing_and_of_infinities(
    ctx: gpu.Context, way: str, kind: str
) -> None:
    text, strategy = WAYS[way]
    schedule = f"schedule f {{ {strategy} }}" if strategy else ""
    start = -np.inf if kind == "max" else np.inf
    with built(f"{text.replace('KIND', kind)}\n{schedule}") as (kernel,):
        for shape in SHAPES:
            infinite = np.full(shape, start, np.float32)
            for x in (infinite, planted(infinite), *with_nans(planted(infinite))):
                wanted = getattr(np, kind)(x, axis=AXES[text], initial=start)
                (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
                np.testing.assert_array_equal(y.numpy(), wanted)
                np.testing.assert_array_equal(kernel.reference(x), wanted)


@pytest.mark.parametrize("kind", sampled(["max", "min"], 2))
def test_nan_in_prefixes_and_tiles(ctx: gpu.Context, kind: str) -> None:
    """By every strategy the same: from where it is on, or in its row and column."""
    text = f"""kernel scanned(x: f32[m, n]) -> y: f32[m, n] {{
        y[i, j] = {kind}[p when p <= j] x[i, p]; }}
    kernel tiled(a: f32[m, k], b: f32[k, n]) -> y: f32[m, n] {{
        y[i, j] = {kind}[p] (a[i, p] + b[p, j]); }}
    schedule scanned {{ scan }} schedule tiled {{ gemm }}"""
    best = {"max": np.maximum, "min": np.minimum}[kind]
    with built(text) as (scanned, tiled):
        for x in with_nans(np.arange(210, dtype=np.float32).reshape(3, 70)):
            y = scanned.launch(ctx, (ctx.tensor(x),), (), (None,))[0].numpy()
            np.testing.assert_array_equal(y, best.accumulate(x, 1))
            b = np.ascontiguousarray(x.T)
            (z,) = tiled.launch(ctx, (ctx.tensor(x), ctx.tensor(b)), (), (None,))
            wanted = best.reduce(x[:, :, None] + b[None], 1)
            np.testing.assert_array_equal(z.numpy(), wanted)


def with_nans(x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """One NaN of either sign: first, in the middle and last."""
    signs = cycle(np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32))
    for place in sorted({0, x.size // 2, x.size - 1} if x.size else ()):
        changed = x.copy()
        changed.flat[place] = next(signs)
        yield changed


def planted(x: NDArray[Any]) -> NDArray[Any]:
    """Finite numbers here and there among infinities."""
    numbers = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    return np.where(numbers % 7 == 3, -3e38 + numbers, x)


@pytest.mark.parametrize("strategy", ["generic", "gemm tile(32, 64, 16) micro(8, 4)"])
@pytest.mark.parametrize("terms", sampled([0, 1, 5, 40], 3))
def test_extremes_of_products(ctx: gpu.Context, strategy: str, terms: int) -> None:
    text = (
        "kernel f(a: f32[m, k], b: f32[k, n]) -> y: f32[m, n] "
        f"{{ y[i, j] = min[p] (a[i, p] + b[p, j]); }}\nschedule f {{ {strategy} }}"
    )
    a = np.full((3, terms), np.inf, np.float32)
    b = np.arange(terms * 9, dtype=np.float32).reshape(terms, 9)
    a[1, ::2] = 1.0
    wanted = (a[:, :, None] + b).min(1, initial=np.inf)
    with built(text) as (kernel,):
        (y,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
        np.testing.assert_array_equal(y.numpy(), wanted)
        np.testing.assert_array_equal(kernel.reference(a, b), wanted)


WRITTEN = """
const TOP: f32 = -inf;
fn masked(t: f32, on: bool) -> f32 { if on { t } else { TOP } }

kernel causal(x: f32[n, n], cap: f32 = inf) -> y: f32[n, n], top: f32[n], far: vec2f[] {
    host bound = min(cap, inf);
    let highest[i] = max[j] masked(x[i, j], j <= i);
    y[i, j] = exp(masked(x[i, j], j <= i) - highest[i]);
    top[i] = min(max[j] if j > i { x[i, j] } else { -inf }, bound);
    far = max[i] vec2f(x[i, 0], if x[i, i] == inf { 1.0 } else { -inf });
}
"""


@pytest.mark.parametrize("adapter", ["software", "reference"])
@pytest.mark.parametrize("cap", [None, 0.5])
def test_infinity_may_be_written(adapter: Kind, cap: float | None) -> None:
    module = kerngen.compile(WRITTEN)
    x = np.random.default_rng(3).standard_normal((9, 9)).astype(np.float32)
    lower = np.where(np.tri(9, dtype=bool), x, -np.inf)
    upper = np.where(np.tri(9, dtype=bool), -np.inf, x).max(1)
    options = {} if cap is None else {"cap": cap}
    with gpu.open(adapter=adapter) as ctx:
        y, top, far = module.causal(ctx.tensor(x), **options)
        less = np.exp(lower - lower.max(1, keepdims=True))
        np.testing.assert_allclose(y.numpy(), less, rtol=1e-5)
        np.testing.assert_array_equal(top.numpy(), np.minimum(upper, cap or np.inf))
        np.testing.assert_array_equal(far.numpy(), [x[:, 0].max(), -np.inf])


def test_a_program_may_give_the_name_a_meaning() -> None:
    text = "kernel f(x: f32[n], inf: f32) -> y: f32[n] { y[i] = x[i] + inf; }"
    shaders = "".join(
        content.decode()
        for path, content in compile_text(text, "f.kern").files.items()
        if path.endswith(".wgsl")
    )
    assert "u.inf" in shaders
    assert "infinity" not in shaders


@pytest.mark.parametrize("value", ["inf - inf", "0.0 * inf", "sqrt(-inf)"])
def test_constants_are_never_nan(value: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(f"kernel f() -> y: f32[] {{ y = {value}; }}", "f.kern")
    assert [fault.code for fault in caught.value.diagnostics] == ["KG0308"]
