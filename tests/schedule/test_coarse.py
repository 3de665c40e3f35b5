"""Four elements per invocation, in rows of any length: apart, or in overlapping windows."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.calls.choices import KernelFunction
from tests.compile import built_module

KERNELS = """
kernel map(x: f32[m, n], b: f32[n]) -> y: f32[m, n] { y[i, j] = 2.0 * x[i, j] + b[j]; }
kernel halve(mut x: f16[n]) { x[i] = x[i] / 2.0; }
kernel pick(x: f32[m, n], at: u32[k]) -> y: f32[m, k] { y[i, p] = x[i, at[p]]; }
kernel box(x: f32[n]) -> y: f32[n - 4] { y[i] = sum[u < 5] x[i + u]; }
kernel far(a: f32[m, d], b: f32[d, n]) -> y: f32[m, n] { y[i, j] = sum[p] (a[i, p] - b[p, j]); }
kernel blur(x: f32[m, n], w: f32[s]) -> y: f32[m, n - s + 1] {
    y[i, j] = sum[u] w[u] * x[i, j + u];
}
kernel long(x: f32[n]) -> y: f32[n - 16999] { y[i] = sum[u < 17000] x[i + u]; }
kernel five(x: f32[5]) -> y: f32[5] { y[i] = 2.0 * x[i]; }
kernel add(mut y: f32[m, n], x: f32[m, n + 2], w: f32[s]) {
    require s == 3;
    y[i, j] = y[i, j] + sum[u < 3] w[u] * x[i, j + u];
}
schedule box { generic neighbours(4) }
schedule add { generic neighbours(4) }
schedule long { generic neighbours(4) }
schedule far { generic neighbours(4) }
schedule blur { generic neighbours(4) }
"""

LENGTHS = (0, 1, 3, 255, 257, 1022, 1023, 1025, 1281, 2047, 2049, 4099)
"""Around the elements of one invocation, of a workgroup with one each, and with four."""


@pytest.fixture(scope="module")
def built() -> Iterator[ModuleType]:
    """The kernels, compiled."""
    with built_module(KERNELS) as module:
        yield module


def random(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(shape).standard_normal(shape, np.float32)


def ran(ctx: gpu.Context, kernel: KernelFunction, **sizes: int) -> str:
    """Return the shader that a call of these sizes runs, if it runs one."""
    (chosen,) = ctx.choices(kernel, **sizes)
    return ", ".join(chosen.shaders)


@pytest.mark.parametrize("length", LENGTHS)
def test_maps_of_any_length(ctx: gpu.Context, built: ModuleType, length: int) -> None:
    b, x = random(length), random(3, length)
    y = built.map(ctx.tensor(x), ctx.tensor(b)).numpy()
    np.testing.assert_array_equal(y, 2 * x + b)
    half = random(length).astype(np.float16)
    tensor = ctx.tensor(half)
    built.halve(tensor)
    np.testing.assert_array_equal(tensor.numpy(), half / np.float16(2))
    at = np.random.default_rng(length).integers(0, 7, length, np.uint32)
    rows = random(2, 7)
    picked = built.pick(ctx.tensor(rows), ctx.tensor(at)).numpy()
    np.testing.assert_array_equal(picked, rows[:, at])


@pytest.mark.parametrize("length", LENGTHS)
def test_serial_sums_of_any_length(
    ctx: gpu.Context, built: ModuleType, length: int
) -> None:
    x, a, b = random(length + 4), random(2, 3), random(3, length)
    wanted = sum(x[u : length + u].astype(np.float64) for u in range(5))
    found = built.box(ctx.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    wanted = (a[:, :, None].astype(np.float64) - b).sum(1)
    found = built.far(ctx.tensor(a), ctx.tensor(b)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    if length % 4:
        shader = "far.generic_neighbours4:edge"
        assert ran(ctx, built.far, m=2, n=length, d=3) == shader


@pytest.mark.parametrize("width", [1, 3, 4, 5, 6, 7, 9, 255, 1021])
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_windows_of_any_width(
    ctx: gpu.Context, built: ModuleType, rows: int, width: int
) -> None:
    """The last four of a row overlap those before them, but each is stored once."""
    x, w = random(rows, width + 2), random(3)
    wanted = sum(w[u] * x[:, u : width + u].astype(np.float64) for u in range(3))
    found = built.blur(ctx.tensor(x), ctx.tensor(w)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    variant = "edge" if width < 4 else "overlapped" if width % 4 else "aligned"
    shader = f"blur.generic_neighbours4:{variant}"
    assert ran(ctx, built.blur, m=rows, n=width + 2, s=3) == shader


def test_elements_that_are_updated_have_one_invocation(
    ctx: gpu.Context, built: ModuleType
) -> None:
    """The last four of a row would read what their neighbours store."""
    y, x, w = random(4, 7), random(4, 9), random(3)
    wanted = y + sum(w[u] * x[:, u : 7 + u].astype(np.float64) for u in range(3))
    updated = ctx.tensor(y)
    built.add(updated, ctx.tensor(x), ctx.tensor(w))
    np.testing.assert_allclose(updated.numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert ran(ctx, built.add, m=4, n=7, s=3) == "add.generic_neighbours4:edge"


@pytest.mark.nightly
@pytest.mark.parametrize("more", [1, 1023])
def test_more_workgroups_than_a_dimension_has(
    ctx: gpu.Context, built: ModuleType, more: int
) -> None:
    """Behind 65,535 workgroups, of four elements a lane, they are folded into two dimensions."""
    length = 65_535 * 1024 + more
    half = np.random.default_rng(more).integers(0, 2048, length).astype(np.float16)
    tensor = ctx.tensor(half)
    built.halve(tensor)
    np.testing.assert_array_equal(tensor.numpy(), half / np.float16(2))


def test_few_results_are_not_counted_as_four(
    ctx: gpu.Context, built: ModuleType
) -> None:
    """Llvmpipe ends loops after 65,535 turns: 17,000 for each of four would be too many."""
    x = random(17_099)
    wanted = np.convolve(x.astype(np.float64), np.ones(17_000), "valid")
    found = built.long(ctx.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_a_domain_smaller_than_a_workgroup_has_one_element_each() -> None:
    """Its shader has no code for four that never runs."""
    files = compile_text(KERNELS, "s.kern").files
    five, any_length = (
        files[f"wgsl/s/{name}.map.wgsl"].decode() for name in ("five", "map")
    )
    assert "whole" in any_length
    assert "whole" not in five
