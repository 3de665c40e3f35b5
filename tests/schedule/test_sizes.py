"""Sizes at which dispatches fold into two dimensions, and adapters at their smallest.

By default `tests/numeric/test_sizes.py` folds, on an adapter that allows few workgroups.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.schedule.per_element import GENERIC_SIZE
from tests.budget import sampled
from tests.compile import built
from tests.language.cases import CASES, Case
from tests.language.meaning import check

MANY = 65_535 * GENERIC_SIZE + 77
"""More elements than one dimension of workgroups of `generic` covers."""


@pytest.fixture(scope="module")
def smallest() -> Iterator[gpu.Context]:
    """A context with WebGPU's default limits, which every adapter offers."""
    with gpu.open(adapter="software", limits=gpu.WEBGPU_LIMITS) as ctx:
        yield ctx


@pytest.mark.nightly
def test_elements_fold(ctx: gpu.Context) -> None:
    text = "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i] + 1.0; }"
    with built(f"{text}\nschedule f {{ generic }}") as (kernel,):
        x = np.arange(MANY, dtype=np.float32)
        (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
        np.testing.assert_array_equal(y.numpy(), x + 1)


@pytest.mark.nightly
def test_joins_of_columns_fold(ctx: gpu.Context) -> None:
    """The second dispatch has 256 columns in a workgroup if there are few parts."""
    text = "kernel f(x: f32[m, n]) -> y: f32[n] { y[j] = sum[i] x[i, j]; }"
    with built(f"{text}\nschedule f {{ reduce }}") as (kernel,):
        x = np.arange(65_535 * 256 + 77, dtype=np.float32)[None]
        (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
        np.testing.assert_array_equal(y.numpy(), x[0])


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["rows", "reduce"])
def test_rows_fold(ctx: gpu.Context, strategy: str) -> None:
    text = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = sum[j] x[i, j]; }"
    with built(f"{text}\nschedule f {{ {strategy} }}") as (kernel,):
        x = np.arange(3 * 65_541, dtype=np.float32).reshape(65_541, 3) % 1000
        (y,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
        np.testing.assert_array_equal(y.numpy(), x.sum(1))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("b", "at", "m", "n"), [("n, k", "j, p", 3, 65_541), ("k, n", "p, j", 131_082, 1)]
)
def test_blocks_of_rows_fold(ctx: gpu.Context, b: str, at: str, m: int, n: int) -> None:
    product = f"c[i, j] = sum[p] a[i, p] * b[{at}];"
    text = f"kernel f(a: f32[m, k], b: f32[{b}]) -> c: f32[m, n] {{ {product} }}"
    with built(f"{text}\nschedule f {{ gemv rows(2) }}") as (kernel,):
        left = np.arange(m, dtype=np.float32).reshape(m, 1) % 7
        right = np.arange(n, dtype=np.float32) % 11 + 1
        laid = right.reshape((n, 1) if b == "n, k" else (1, n))
        (c,) = kernel.launch(ctx, (ctx.tensor(left), ctx.tensor(laid)), (), (None,))
        np.testing.assert_array_equal(c.numpy(), left * right)


@pytest.mark.nightly
def test_tiles_fold(ctx: gpu.Context) -> None:
    product = "c[i, j] = sum[p] a[i, p] * b[p, j];"
    text = f"kernel f(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {{ {product} }}"
    schedule = "schedule f { gemm tile(32, 16, 4) micro(4, 4) }"
    with built(f"{text}\n{schedule}") as (kernel,):
        a = np.arange(32 * 33_000, dtype=np.float32).reshape(-1, 1) % 7
        b = np.arange(17, dtype=np.float32).reshape(1, -1)
        (c,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
        np.testing.assert_array_equal(c.numpy(), a @ b)


def test_a_loop_that_the_adapter_would_cut_short_is_refused(ctx: gpu.Context) -> None:
    text = "kernel f(x: f32[n]) -> s: f32[] { s = sum[i] x[i]; }"
    with built(f"{text} schedule f {{ generic }}") as (kernel,):
        for n in (65_000, 65_500):
            (s,) = kernel.launch(
                ctx, (ctx.tensor(np.ones(n, np.float32)),), (), (None,)
            )
            assert s.item() == n
        x = ctx.tensor(np.ones(65_536, np.float32))
        with pytest.raises(gpu.LimitError, match="runs a loop 65536 times"):
            kernel.launch(ctx, (x,), (), (None,))


def test_shared_loops_are_shorter(ctx: gpu.Context) -> None:
    text = "kernel f(x: f32[m, n]) -> s: f32[n] { s[j] = sum[i] x[i, j]; }"
    with built(text) as (kernel,):
        x = ctx.tensor(np.ones((300_000, 3), np.float32))
        (s,) = kernel.launch(ctx, (x,), (), (None,))
        assert s.numpy().tolist() == [300_000] * 3


def test_more_terms_than_a_counter_holds_are_refused(ctx: gpu.Context) -> None:
    text = "kernel f(a: f32[m], b: f32[n]) -> s: f32[] { s = sum[i, j] a[i] * b[j]; }"
    with built(text) as (kernel,):
        a = ctx.tensor(np.ones(65_536, np.float32))
        with pytest.raises(
            gpu.LimitError, match=r"f \(built_\d+.kern:1\): .* counts to 4294967296"
        ):
            kernel.launch(ctx, (a, a), (), (None,))


@pytest.mark.parametrize("case", sampled(CASES, 8))
def test_default_limits_are_enough(smallest: gpu.Context, case: Case) -> None:
    with built(case.text) as (kernel,):
        check(smallest, case, kernel, 9)
