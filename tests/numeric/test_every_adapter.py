"""What holds on every adapter, however small: continuous integration tries several.

A context with WebGPU's default limits runs every standard kernel, by every schedule and
variant that fits, and refuses the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import TypeAlias

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.plan.tree import dispatches_in
from kerngen.runtime import Context, FeatureError, LimitError, f16, f32
from tests.compile import built
from tests.runtime.kernels import DOUBLED, launch

from .cases import Arrays, Case
from .ways import Way, all_ways, some, ways

Lengths: TypeAlias = tuple[int, ...]

SIZES: tuple[Lengths, ...] = ((1,), (37, 5, 67), (64, 132, 8))
"""Taken in turn by the dims of a kernel."""


LEAST = {
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-storage-size": 16384,
    "max-storage-buffers-per-shader-stage": 8,
    "max-compute-workgroups-per-dimension": 65535,
    "max-storage-buffer-binding-size": 134217728,
    "min-storage-buffer-offset-alignment": 256,
}
"""From WebGPU's table of limits, not from ours."""

PRODUCT = """
kernel f(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[p, j];
}
"""


TOO_MUCH = {
    "20736 bytes of workgroup memory": "gemm tile(128, 128, 16) pad(1)",
    "512 invocations": "gemm tile(128, 64, 4) micro(4, 4)",
}
"""Schedules that need more than the least."""

TOO_MANY = "kernel f({a}) -> y: f32[n] {{ y[i] = {sum}; }} schedule f {{ generic }}"


@pytest.fixture(scope="module")
def least(ctx: Context) -> Iterator[Context]:
    """A context with WebGPU's default limits and features on the adapter of `ctx`."""
    adapter = ctx.device.adapter
    device = adapter.request_device_sync(required_limits=dict(gpu.WEBGPU_LIMITS))
    with gpu.open(device=device) as opened:
        yield opened
    device.destroy()


def test_the_least_is_webgpus(least: Context) -> None:
    limits = least.device.limits
    assert {name: limits[name] for name in LEAST} == LEAST


def fits(way: Way) -> bool:
    """Whether a context with the least can run a kernel this way."""
    needs = [strategy.needs for strategy in way.strategies]
    dispatches = dispatches_in(way.kernel.body)
    return (
        all(s.invocations <= 256 and s.workgroup_bytes <= 16384 for s in needs)
        and max(len(dispatch.bindings) for dispatch in dispatches) <= 8
    )


def draw(way: Way, lengths: Lengths) -> tuple[Arrays, dict[str, float]]:
    rng = np.random.default_rng(11)
    return way.draw(rng, dict(zip(way.case.kernel.dims, cycle(lengths))))


def hold_to_oracle(ctx: Context, way: Way) -> None:
    """Run a kernel one way at a few sizes and compare with its oracle."""
    for lengths in SIZES:
        arrays, scalars = draw(way, lengths)
        way.check(way.run(ctx, arrays, scalars), arrays, scalars, f"of {lengths}")


@pytest.mark.parametrize("way", list(some(all_ways(), most=1, every=4, but=("sort",))))
def test_the_least_is_enough(least: Context, way: Way) -> None:
    if way.halves:
        with pytest.raises(FeatureError, match=way.case.kernel.name):
            way.run(least, *draw(way, (8, 8, 8)))
        return
    if fits(way):
        hold_to_oracle(least, way)
        return
    with pytest.raises(LimitError, match=way.case.kernel.name):
        way.run(least, *draw(way, (8, 8, 8)))


@pytest.mark.parametrize("options", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_schedule_that_needs_more_is_passed_over(
    least: Context, options: str
) -> None:
    with built(f"{PRODUCT} schedule f {{ {options} }}") as (kernel,):
        way, *_ = ways(Case("product", kernel, np.matmul))
        assert not fits(way)
        a, b = least.zeros((9, 5), f32), least.zeros((5, 7), f32)
        with pytest.raises(
            LimitError, match=r"f \(.*\): no schedule of stage 'c' fits"
        ):
            way.kernel.launch(least, (a, b), (), (None,))
        (c,) = kernel.launch(least, (a, b), (), (None,))
        assert not c.numpy().any()


def test_a_kernel_that_binds_more_is_refused(least: Context) -> None:
    names = "abcdefgh"
    text = TOO_MANY.format(
        a=", ".join(f"{name}: f32[n]" for name in names),
        sum=" + ".join(f"{name}[i]" for name in names),
    )
    with built(text) as (kernel,):
        x = least.zeros(5, f32)
        with pytest.raises(LimitError, match="binds 9 tensors; the adapter allows 8"):
            kernel.launch(least, (x,) * 8, (), (None,))


def test_f16_is_refused_without_the_feature(ctx: Context, least: Context) -> None:
    for context in (ctx, least):
        x = context.vector([0.5, 3.0], f16)
        if "shader-f16" in context.device.features:
            (y,) = launch(DOUBLED, x)
            assert y.numpy().tolist() == [1.0, 6.0]
        else:
            with pytest.raises(
                FeatureError, match=r"doubled \(hand.kern:7\): 'x' has f16 elements"
            ):
                launch(DOUBLED, x)
