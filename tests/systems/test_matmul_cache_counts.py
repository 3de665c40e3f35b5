"""What a product costs: uploads, reads, things created, memory."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.matmul_cache import Layout, MatmulCache
from kerngen.runtime import Context, Counters, f32


def created(done: Counters) -> tuple[int, int, int]:
    return (done.buffers_created, done.pipelines_created, done.bind_groups_created)


@pytest.mark.parametrize("m", [1, 2, 8, 9])
@pytest.mark.parametrize("layout", get_args(Layout))
def test_a_repeated_product_creates_nothing(
    ctx: Context, m: int, layout: Layout
) -> None:
    cache = MatmulCache(ctx)
    before = ctx.counters.snapshot()
    cache.upload_weight("w", np.ones((30, 30)), layout)
    assert (ctx.counters - before).uploads == 1
    cache.matmul("w", np.ones((m, 30)))
    for value in (2.0, 3.0):
        before = ctx.counters.snapshot()
        y = cache.matmul("w", np.full((m, 30), value))
        done = ctx.counters - before
        assert created(done) == (0, 0, 0)
        # The one copy is the read's own, to a buffer that can be mapped.
        assert (done.uploads, done.copies, done.readbacks, done.submits) == (1, 1, 1, 1)
        np.testing.assert_array_equal(y, np.full((m, 30), 30 * value))


def test_buffers_grow_and_stay(ctx: Context) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((300, 300)))
    sizes = [1, 40, 3, 40, 1]
    for m in sizes:
        cache.matmul("w", np.ones((m, 300)))
    before = ctx.counters.snapshot()
    for m in sizes:
        cache.matmul("w", np.ones((m, 300)))
    assert created(ctx.counters - before) == (0, 0, 0)
    assert cache.memory.inputs == cache.memory.outputs == 40 * 300 * 4


def test_a_product_of_tensors_is_only_recorded(ctx: Context) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((6, 5)))
    x = ctx.zeros((3, 5), f32)
    ctx.submit()
    before = ctx.counters.snapshot()
    y = cache.matmul("w", x)
    done = ctx.counters - before
    assert (done.calls, done.dispatches) == (1, 1)
    assert (done.uploads, done.readbacks, done.submits, done.copies) == (0, 0, 0, 0)
    assert cache.memory.inputs == cache.memory.outputs == 0
    np.testing.assert_array_equal(y.numpy(), np.zeros((3, 6)))


def test_released_buffers_serve_others(ctx: Context) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((1000, 10)))
    cache.matmul("w", np.ones((100, 10)))
    cache.release_buffers()
    before = ctx.counters.snapshot()
    other = ctx.empty(100_000, f32)
    assert created(ctx.counters - before) == (0, 0, 0)
    del other


@pytest.mark.nightly
def test_thousands_of_products_hold_no_more_memory(ctx: Context) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.ones((4, 4)))
    arrays = [np.ones((m, 4), np.float32) for m in (1, 2, 9)]
    tensors = [ctx.matrix(array, f32) for array in arrays]

    def repeat(times: int) -> int:
        """Return how many blocks of memory Python holds afterwards."""
        for number in range(times):
            if number % 8 == 0:
                cache.matmul("w", arrays[number % 3])
            else:
                cache.matmul("w", tensors[number % 3])
        gc.collect()
        return sys.getallocatedblocks()

    gc.collect()  # What other tests left behind would come back to the pool later.
    blocks = repeat(500)
    before = ctx.counters.snapshot()
    memory = cache.memory
    grown = repeat(3_000) - blocks
    assert created(ctx.counters - before) == (0, 0, 0)
    assert cache.memory == memory
    assert grown < 1000, f"{grown} blocks more"


def test_plans_are_bounded(ctx: Context) -> None:
    cache: Any = MatmulCache(ctx)
    for m in range(5000):
        cache.plan(m, 3, 4)
    assert len(cache._plans) <= 4096


@pytest.mark.parametrize("adapter", ["software", "reference"])
def test_threads_share_a_cache(ctx: Context, adapter: str) -> None:
    own = ctx if adapter == "software" else gpu.open(adapter="reference")
    cache = MatmulCache(own)
    cache.upload_weight("w", np.eye(50))

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.integers(0, 99, size=(seed, 50)).astype(np.float32)
            np.testing.assert_array_equal(cache.matmul("w", x), x)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))


def test_arrays_inside_a_batch(ctx: Context) -> None:
    cache = MatmulCache(ctx)
    cache.upload_weight("w", np.eye(3))
    x = ctx.vector([1.0, 2.0, 3.0], f32)
    with ctx.batch():
        y = cache.matmul("w", x)
        x.copy_from(np.zeros(3))
        z = cache.matmul("w", [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(y.numpy(), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(z, [4.0, 5.0, 6.0])
