"""Any legal tiling of a matrix product gives the same product, whole tiles or not."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kerngen.runtime as gpu
from kerngen.plan.tree import cases_in
from kerngen.runtime.calls.kernel import Kernel
from kerngen.schedule.gemm.tiling import (
    MEDIUM_SLICED_OPTIONS,
    SMALL_SLICED_OPTIONS,
    Tiling,
    tiling_of,
)
from tests.budget import examples
from tests.compile import built
from tests.language.cases import Inputs

pytestmark = pytest.mark.usefixtures("always_shared")

KERNEL = """
kernel f(a: f32[{a}], b: f32[{b}], bias: f32[n]) -> c: f32[m, n] {{
    let z[i, j] = 2.0 * sum[p] a[{a_at}] * b[{b_at}] + bias[j];
    c[i, j] = z[i, j] * z[i, j] + f32(i - j);
}}
schedule f {{ gemm {options} }}
"""

LANES = ((1, 32), (2, 16), (4, 8), (8, 4), (16, 2), (32, 1))
DEFAULT_INVOCATIONS = 256


@st.composite
def tilings(draw: st.DrawFn) -> Tiling:
    """Tilings that kerngen accepts and that every adapter can run."""
    across, down = draw(st.sampled_from(LANES))
    columns = across * draw(st.sampled_from((1, 2)))
    rows = down * draw(st.sampled_from((1, 2)))
    micro_m, micro_n = draw(st.sampled_from(((4, 4), (8, 4), (4, 8))))
    tiling = Tiling(
        m=rows * micro_m,
        n=columns * micro_n,
        k=draw(st.sampled_from((4, 8, 16, 32))),
        micro_m=micro_m,
        micro_n=micro_n,
        pad=draw(st.integers(0, 2)),
        buffers=draw(st.integers(1, 2)),
        stream=draw(st.sampled_from((0, 1, 3, 7))),
        slices=draw(st.sampled_from((1, 2, 4))),
        lane_columns=across,
        lane_rows=down,
    )
    fits = tiling.invocations <= DEFAULT_INVOCATIONS and not any(tiling.faults())
    return tiling if fits else replace(tiling, slices=1)


def options(t: Tiling) -> str:
    return (
        f"tile({t.m}, {t.n}, {t.k}) micro({t.micro_m}, {t.micro_n}) pad({t.pad}) "
        f"lanes({t.lane_columns}, {t.lane_rows}) buffers({t.buffers}) stream({t.stream}) "
        f"slices({t.slices})"
    )


def check(ctx: gpu.Context, kernel: Kernel, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    draw = Inputs(m * n + k)
    a, b, bias = draw.f32(m, k), draw.f32(k, n), draw.f32(n)
    z = 2 * (a @ b) + bias
    wanted = z * z + np.subtract.outer(np.arange(m), np.arange(n))
    left, right, *_ = (spec.axes for spec in kernel.tensors)
    arrays = (a if left == ("m", "k") else a.T, b if right == ("k", "n") else b.T, bias)
    tensors = tuple(ctx.tensor(np.ascontiguousarray(array)) for array in arrays)
    (c,) = kernel.launch(ctx, tensors, (), (None,))
    np.testing.assert_array_equal(c.numpy(), wanted)


@settings(max_examples=examples(6), deadline=None)
@given(
    tiling=tilings(),
    transposed=st.tuples(st.booleans(), st.booleans()),
    extra=st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
)
def test_tilings_agree(
    ctx: gpu.Context,
    tiling: Tiling,
    transposed: tuple[bool, bool],
    extra: tuple[int, int, int],
) -> None:
    agrees(ctx, tiling, transposed, extra)


SLICED = {
    "small": tiling_of(SMALL_SLICED_OPTIONS),
    "medium": tiling_of(MEDIUM_SLICED_OPTIONS),
    "four": Tiling(m=32, n=32, k=64, micro_m=4, micro_n=4, slices=4),
    "joined in parts": Tiling(m=64, n=64, k=16, micro_m=8, micro_n=8, slices=4),
}


@pytest.mark.parametrize("name", SLICED)
@pytest.mark.parametrize("transposed", [*product((False, True), repeat=2)])
def test_slices_agree(
    ctx: gpu.Context, name: str, transposed: tuple[bool, bool]
) -> None:
    tiling = replace(SLICED[name], stream=0)
    agrees(ctx, tiling, transposed, (5, 2, 3))
    agrees(ctx, replace(tiling, stream=3), transposed, (4, 4, 20))


def test_floats_are_compared_without_slices(ctx: gpu.Context) -> None:
    """Their ranks are integers, for which a tile of floats has no place."""
    text = """kernel f(a: f32[m, k], b: f32[n, k]) -> c: f32[m, n] {
        c[i, j] = max[p] (a[i, p] + b[j, p]);
    }"""
    a, b = Inputs(1).f32(200, 65), Inputs(2).f32(190, 65)
    with built(text) as (kernel,):
        (c,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
        dims = {"m": 200, "k": 65, "n": 190}
        (choice,) = ctx.backend.choices(kernel, dims)
    assert choice.strategy.startswith("gemm_tile")
    assert "slices" not in choice.strategy
    np.testing.assert_array_equal(c.numpy(), (a[:, None] + b).max(-1))


def agrees(
    ctx: gpu.Context,
    tiling: Tiling,
    transposed: tuple[bool, bool],
    extra: tuple[int, int, int],
) -> None:
    """Compare a product with NumPy's, of whole tiles and of some more."""
    assert not list(tiling.faults())
    left, right = transposed
    text = KERNEL.format(
        a="k, m" if left else "m, k",
        b="n, k" if right else "k, n",
        a_at="p, i" if left else "i, p",
        b_at="j, p" if right else "p, j",
        options=options(tiling),
    )
    turns = 400 // tiling.k if tiling.stream else 3
    m, n, k = tiling.m * 2, tiling.n, tiling.k * turns
    with built(text) as (kernel,):
        check(ctx, kernel, (m, n, k))
        check(ctx, kernel, (m + extra[0], n + extra[1], k + extra[2]))


@pytest.mark.parametrize(
    ("tiling", "fault"),
    [
        (Tiling(m=100), "does not divide"),
        (Tiling(micro_m=6, m=96), "multiples of 4"),
        (Tiling(m=0), "does not divide"),
        (Tiling(micro_m=0), "positive multiples"),
        (Tiling(k=128), "at most 64 terms"),
        (Tiling(micro_m=32, micro_n=16), "at most 256 sums"),
        (Tiling(m=512, n=512), "takes 2048 invocations"),
        (Tiling(lane_columns=4, lane_rows=4), "are not 32"),
        (Tiling(lane_columns=32, lane_rows=1), "do not divide the 8 x 16"),
        (Tiling(k=48, slices=2), "must be powers of 2"),
        (Tiling(k=48, slices=3), "must be powers of 2"),
        (Tiling(slices=8), "and k at least 32"),
        (Tiling(m=64, n=64, micro_m=4, micro_n=4, slices=4), "no place for the sums"),
    ],
)
def test_what_makes_no_tiling_is_said(tiling: Tiling, fault: str) -> None:
    (said,) = tiling.faults()
    assert fault in said


def test_the_default_stays_within_default_limits() -> None:
    with built(
        KERNEL.format(a="m, k", b="k, n", a_at="i, p", b_at="p, j", options="")
    ) as (kernel,):
        for case in cases_in(kernel.body):
            assert case.needs.workgroup_bytes <= 16384
            assert case.needs.invocations <= DEFAULT_INVOCATIONS


def test_terms_beyond_the_end_are_zero_in_both_factors(ctx: gpu.Context) -> None:
    """An operand of neither index in runs, and terms that make no fours: inf stays inf."""
    text = (
        "kernel f(a: f32[m2, k2], b: f32[k, n]) -> c: f32[m2 / 2, n] {"
        " c[i, j] = sum[p] a[2 * i, 2 * p] * b[p, j]; }"
    )
    a, b = np.ones((10, 34), np.float32), np.ones((17, 8), np.float32)
    a[:, 2:8] = np.inf
    with built(f"{text} schedule f {{ gemm tile(32, 32, 16) micro(4, 4) }}") as (
        kernel,
    ):
        (c,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
        np.testing.assert_array_equal(c.numpy(), np.full((5, 8), np.inf))


@pytest.mark.parametrize(
    ("groups", "batch", "k", "said"),
    [
        (2, 1, 600_000, "runs a loop 75002 times"),
        (20_000, 2**18, 4 * 2**13, "counts to 2147483648"),
    ],
)
def test_more_turns_than_an_adapter_or_a_counter_has_are_refused(
    ctx: gpu.Context, groups: int, batch: int, k: int, said: str
) -> None:
    text = (
        "kernel f(a: f32[2, m, k], b: f32[k, n], d: f32[t]) -> c: f32[t, m, n] {"
        " c[x, i, j] = d[x] + sum[p] a[x % 2, i, p] * b[p, j]; }"
        f" schedule f {{ gemm tile(32, 16, 4) micro(4, 4) stream({groups}) }}"
    )
    with built(text) as (kernel,):
        shapes = (2, 1, k), (k, 1), (batch,)
        tensors = tuple(ctx.tensor(np.ones(shape, np.float32)) for shape in shapes)
        with pytest.raises(gpu.LimitError, match=said):
            kernel.launch(ctx, tensors, (), (None,))
