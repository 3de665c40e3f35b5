"""Weights beyond what the adapter binds: values, limits, and no detour over the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kerngen.runtime as gpu
from kerngen.matmul_cache import Layout, MatmulCache
from kerngen.matmul_cache.layouts import weight_shape
from kerngen.matmul_cache.split import split_weight
from kerngen.runtime import Context, f32
from tests.budget import sampled
from tests.systems.products import check_product, narrow_context

MOST = 16384


@pytest.fixture(scope="module")
def narrow() -> Iterator[Context]:
    with narrow_context(MOST) as ctx:
        yield ctx


@given(
    k=st.integers(0, 3000),
    n=st.integers(0, 3000),
    layout=st.sampled_from(get_args(Layout)),
    most=st.integers(1, 2**20).map(lambda words: 4 * words),
)
def test_parts_cover_the_rows_and_fit(
    k: int, n: int, layout: Layout, most: int
) -> None:
    rows, columns = weight_shape(layout, k, n)
    row_bytes = 4 * columns
    if rows and row_bytes > most // 16 * 16:
        with pytest.raises(gpu.LimitError):
            split_weight(layout, k, n, most)
        return
    ranges = split_weight(layout, k, n, most)
    starts, stops = [a for a, _ in ranges], [b for _, b in ranges]
    assert (starts[0], stops[-1]) == (0, rows)
    assert starts[1:] == stops[:-1]
    lengths = [b - a for a, b in ranges]
    assert all(-(-length * row_bytes // 16) * 16 <= most for length in lengths)
    if len(ranges) > 1:
        assert len(set(lengths[:-1])) == 1
        assert 0 < lengths[-1] <= lengths[0]
        if 64 * row_bytes <= most // 16 * 16:
            assert all(start % 64 == 0 for start in starts)


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize(
    ("k", "n"), [(50, 300), (51, 301), (61, 65), (301, 50), (4096, 3), (3, 4096)]
)
@pytest.mark.parametrize("m", sampled([1, 9, 2, 3, 8], 3))
def test_results_of_parts_agree(
    narrow: Context, m: int, k: int, n: int, layout: Layout
) -> None:
    cache, rng = MatmulCache(narrow), np.random.default_rng(k + n)
    weight = rng.normal(size=(n, k)).astype(np.float32)
    x = rng.normal(size=(m, k)).astype(np.float32)
    if max(m * k, m * n) * 4 > MOST:
        x = x[: MOST // (4 * max(k, n))]
    cache.upload_weight("w", weight if layout == "nk" else weight.T, layout)
    what = f"{(m, k, n, layout)}"
    check_product(cache.matmul("w", x), x, weight, what)
    check_product(cache.matmul("w", narrow.matrix(x, f32)).numpy(), x, weight, what)
    assert len(cache.plan(len(x), k, n, layout).parts) == len(
        split_weight(layout, k, n, MOST)
    )


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize("m", [1, 3])
def test_nothing_is_read_or_uploaded_between_parts(
    narrow: Context, m: int, layout: Layout
) -> None:
    cache = MatmulCache(narrow)
    before = narrow.counters.snapshot()
    cache.upload_weight("w", np.ones((200, 60)), layout)
    assert (narrow.counters - before).uploads == 4
    x = narrow.zeros((m, 60 if layout == "nk" else 200), f32)
    cache.matmul("w", x).numpy()
    before = narrow.counters.snapshot()
    cache.matmul("w", x)
    done = narrow.counters - before
    assert (done.uploads, done.readbacks, done.copies) == (0, 0, 0)
    assert (done.buffers_created, done.bind_groups_created) == (0, 0)


def test_short_parts_take_detours_and_agree(narrow: Context) -> None:
    """Rows of 4000 bytes: four to a part, whose results start at no multiple of 256."""
    cache, rng = MatmulCache(narrow), np.random.default_rng(0)
    weight = rng.normal(size=(21, 1000)).astype(np.float32)
    cache.upload_weight("nk", weight)
    cache.upload_weight("kn", rng.normal(size=(21, 1000)), layout="kn")
    assert [p.stop for p in cache.plan(3, 1000, 21).parts] == [4, 8, 12, 16, 20, 21]
    for m in (1, 2, 3):
        x = rng.normal(size=(m, 1000)).astype(np.float32)
        check_product(cache.matmul("nk", x), x, weight, f"m = {m}")


def test_limits_are_told(narrow: Context) -> None:
    cache = MatmulCache(narrow)
    message = (
        r"weight 'w': One row of a weight of shape \(2, 4097\) \(layout 'nk'\) takes "
        r"16388 bytes, and the adapter binds at most 16384; .* layout='kn', whose rows "
        r"take 8 bytes, or several weights with a part of k each"
    )
    with pytest.raises(gpu.LimitError, match=message):
        cache.upload_weight("w", np.ones((2, 4097)))
    message = "never cut. Upload several weights with a part of k each"
    with pytest.raises(gpu.LimitError, match=message):
        cache.upload_weight("w", np.ones((4097, 4097), np.int8))
    assert cache.weight_count == 0
    cache.upload_weight("w", np.ones((2, 4097)).T, layout="kn")
    with pytest.raises(gpu.LimitError, match=r"'w': x of shape \(1, 4097\).*smaller w"):
        cache.matmul("w", np.ones(4097))
    cache.upload_weight("w", np.ones((300, 50)))
    before = narrow.counters.snapshot()
    message = r"'w': The result of shape \(14, 300\) takes 16800 .*fewer rows at a time"
    with pytest.raises(gpu.LimitError, match=message):
        cache.matmul("w", np.ones((14, 50)))
    with pytest.raises(gpu.LimitError, match=r"^x of shape \(90, 50\)"):
        cache.plan(90, 50, 30)
    done = narrow.counters - before
    assert (done.uploads, done.dispatches, done.buffers_created) == (0, 0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("layout", ["nk", "kn"])
def test_a_weight_beyond_the_adapters_own_limit(ctx: Context, layout: Layout) -> None:
    """Small integers: float32 holds every sum of them exactly, in any order."""
    columns = 4099
    rows = ctx.max_tensor_bytes // (4 * columns) + 70
    k, n = (columns, rows) if layout == "nk" else (rows, columns)
    rng, cache = np.random.default_rng(1), MatmulCache(ctx)
    weight = rng.integers(-3, 4, size=(rows, columns), dtype=np.int8)
    x = rng.integers(-3, 4, size=(3, k), dtype=np.int8)
    cache.upload_weight("w", weight, layout)
    assert cache.weight_bytes > ctx.max_tensor_bytes
    plan = cache.plan(3, k, n, layout)
    assert (len(plan.parts), plan.axis) == (2, "n" if layout == "nk" else "k")
    factor = weight.astype(np.float32)
    expected = x.astype(np.float32) @ (factor.T if layout == "nk" else factor)
    np.testing.assert_array_equal(cache.matmul("w", x), expected)
    np.testing.assert_array_equal(cache.matmul("w", x[1:2]), expected[1:2])
    cache.remove_weight("w")
    cache.release_buffers()
    ctx.trim()
