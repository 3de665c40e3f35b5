"""A plan says what runs: it is compared with what the runtime dispatches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import get_args

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.matmul_cache import Layout, MatmulCache, MatmulPlan
from kerngen.runtime import Context, f32
from tests.budget import sampled
from tests.runtime.dispatches import watch_dispatches
from tests.systems.products import narrow_context

Watch = Callable[[Context], list[str]]


@pytest.fixture(scope="module")
def narrow() -> Iterator[Context]:
    with narrow_context(16384) as ctx:
        yield ctx


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a list that fills with the labels of what a context dispatches."""

    return partial(watch_dispatches, monkeypatch=monkeypatch)


def labels(plan: MatmulPlan) -> list[str]:
    """The shaders that a plan names."""
    return [*chain.from_iterable(part.shaders for part in plan.parts)]


def shader_of(label: str) -> str:
    """The shader in a label, `'matmul_nn' (matmul_nn.gemv)`: kernels may share it."""
    return label.partition(" (")[2].removesuffix(")")


def split(seen: list[str], plan: MatmulPlan) -> tuple[list[str], set[str]]:
    """Part what was dispatched into the plan's shaders, and the kernels of others."""
    planned = {*labels(plan)}
    own = [shader for shader in map(shader_of, seen) if shader in planned]
    others = {label.split("'")[1] for label in seen if shader_of(label) not in planned}
    return own, others


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        *sampled(product([0, 1, 2, 3, 8, 9, 128], [10, 64], [1, 7, 64]), 4),
        (1, 1, 1),
        (1, 70_000, 3),
        (2, 10, 70_000),
    ],
)
def test_what_is_planned_runs(
    ctx: Context, watch: Watch, m: int, k: int, n: int, layout: Layout
) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((n, k) if layout == "nk" else (k, n)), layout)
    plan = cache.plan(m, k, n, layout)
    x = ctx.zeros((m, k), f32)
    seen = watch(ctx)
    cache.matmul("w", x)
    assert [*map(shader_of, seen)] == labels(plan)
    assert (seen != []) == (m > 0)
    assert (plan.axis, len(plan.parts)) == (None, 1)


@pytest.mark.parametrize("m", [1, 2, 8, 9, 13])
@pytest.mark.parametrize(
    ("layout", "k", "n", "axis", "helpers"),
    [
        ("nk", 50, 300, "n", {"transpose"}),
        ("nk", 50, 257, "n", {"transpose"}),  # a last part of one row: other shaders
        ("kn", 300, 50, "k", {"slice_columns", "axpy"}),
    ],
)
def test_parts_run_as_planned(
    narrow: Context,
    watch: Watch,
    m: int,
    layout: Layout,
    k: int,
    n: int,
    axis: str,
    helpers: set[str],
) -> None:
    cache = MatmulCache(narrow)
    rows, columns = (n, k) if layout == "nk" else (k, n)
    cache.upload_weight("w", np.ones((rows, columns)), layout)
    plan = cache.plan(m, k, n, layout)
    seen = watch(narrow)
    cache.matmul("w", np.ones((m, k)))
    own, others = split(seen, plan)
    assert own == labels(plan)
    assert others == (helpers if m > 1 else helpers & {"axpy"})
    assert plan.axis == axis
    starts = [0, 64, 128, 192, 256]
    assert [part.start for part in plan.parts] == starts
    assert [part.stop for part in plan.parts] == [*starts[1:], rows]
    assert f"{4 * k * n} bytes exceed the 16384" in plan.why
    assert f"5 parts along {axis}" in plan.why


def test_the_schedule_follows_m(ctx: Context) -> None:
    cache = MatmulCache(ctx)
    kernels: dict[Layout, tuple[str, str]] = {
        "nk": ("gemv.gemv", "matmul.matmul_nt"),
        "kn": ("gemv.gemv_t", "matmul.matmul_nn"),
    }
    for layout, (vector, matrix) in kernels.items():
        plans = [cache.plan(m, 4096, 4096, layout) for m in (1, 2, 8, 17, 64)]
        words = ["gemv", "skinny", "skinny", "tiled", "tiled"]
        assert [plan.schedule for plan in plans] == words
        assert [plan.kernel for plan in plans] == [vector, *[matrix] * 4]
        strategies = [plan.parts[0].strategy.partition("_")[0] for plan in plans]
        assert strategies == ["gemv", "gemv", "gemv", "gemm", "gemm"]
        for plan in plans:
            assert plan.why.startswith(f"With m = {plan.m} and n = 4096, ")
            assert plan.why.endswith("67108864 bytes are bound as a whole.")


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize(("m", "n"), [(0, 7), (3, 0), (1, 0), (0, 1), (0, 0)])
def test_an_empty_product_is_called_so(
    ctx: Context, m: int, n: int, layout: Layout
) -> None:
    plan = MatmulCache(ctx).plan(m, 5, n, layout)
    assert plan.schedule == "empty"
    assert labels(plan) == []
    assert "the result has no elements, and nothing runs" in plan.why


def test_a_product_goes_by_the_plan_that_is_shown(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[object] = []

    def note(plan: object, *_: object) -> None:
        used.append(plan)

    monkeypatch.setattr("kerngen.matmul_cache.cache.multiply", note)
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((3, 4)))
    cache.matmul("w", np.ones((2, 4)))
    cache.matmul("w", np.ones(4))
    assert used[0] is cache.plan(2, 4, 3)
    assert used[1] is cache.plan(1, 4, 3)


def test_the_reference_says_so() -> None:
    with gpu.open(adapter="reference") as ctx:
        plan = MatmulCache(ctx).plan(5, 6, 7)
    assert (plan.schedule, plan.kernel) == ("reference", "matmul.matmul_nt")
    assert [(p.strategy, p.shaders) for p in plan.parts] == [("reference", ())]
    assert "NumPy" in plan.why
