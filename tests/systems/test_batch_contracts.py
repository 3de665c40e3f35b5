"""What a batch promises about compiling, submitting and memory, as counters show it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from kerngen.batch import Batch
from kerngen.runtime import Context, Counters, f32
from tests.conftest import open_software_context


@pytest.fixture
def fresh() -> Iterator[Context]:
    """Return a context that has compiled nothing yet."""
    with open_software_context() as ctx:
        yield ctx


def executed(batch: Batch, ctx: Context) -> Counters:
    before = ctx.counters.snapshot()
    batch.execute()
    return ctx.counters - before


def queue_some(batch: Batch) -> None:
    """Queue five products of enough rows for tiles, a dispatch each, and five others."""
    x = batch.upload(np.ones((9, 9), np.float32))
    for _ in range(5):
        x = batch.relu(batch.matmul(x, x))


def test_a_shader_is_compiled_once_however_many_batches_use_it(fresh: Context) -> None:
    created: list[int] = []
    for _ in range(3):
        batch = Batch(fresh)
        queue_some(batch)
        created.append(executed(batch, fresh).pipelines_created)
        del batch
    assert created == [2, 0, 0]
    pipelines = fresh.caches["pipelines"]
    assert pipelines.misses == 2


def test_another_size_of_the_same_operation_compiles_nothing(fresh: Context) -> None:
    batch = Batch(fresh)
    batch.relu(batch.upload(np.ones(8)))
    batch.execute()
    batch.relu(batch.upload(np.ones(4096)))
    batch.leaky_relu(batch.upload(np.ones(8)), 0.5)
    batch.leaky_relu(batch.upload(np.ones(8)), 0.25)
    assert executed(batch, fresh).pipelines_created == 1


def test_an_execution_is_one_submission(ctx: Context) -> None:
    ctx.submit()
    batch = Batch(ctx)
    queue_some(batch)
    usual = ctx.limits.dispatches
    ctx.limits.dispatches = 2
    try:
        first = executed(batch, ctx)
    finally:
        ctx.limits.dispatches = usual
    assert (first.submits, first.encoders, first.passes) == (1, 1, 1)
    assert (first.uploads, first.dispatches, first.readbacks) == (1, 10, 0)
    queue_some(batch)
    queue_some(batch)
    second = executed(batch, ctx)
    assert (second.submits, second.dispatches, second.uploads) == (1, 20, 2)


def test_queuing_touches_the_device_not_at_all(ctx: Context) -> None:
    before = ctx.counters.snapshot()
    batch = Batch(ctx)
    queue_some(batch)
    assert ctx.counters - before == Counters()


def test_an_empty_batch_does_nothing(ctx: Context) -> None:
    ctx.zeros(4, f32)  # recorded by someone else, and left alone
    assert executed(Batch(ctx), ctx) == Counters()
    ctx.submit()
    batch = Batch(ctx)
    queue_some(batch)
    batch.execute()
    assert executed(batch, ctx) == Counters()


def test_a_step_that_is_repeated_creates_nothing(ctx: Context) -> None:
    def step() -> Counters:
        batch = Batch(ctx)
        queue_some(batch)
        return executed(batch, ctx)

    step()
    again = step()
    created = again.buffers_created, again.bind_groups_created, again.pipelines_created
    assert created == (0, 0, 0)


# ---- imported buffers


def test_an_imported_buffer_outlives_the_batches_that_share_it(ctx: Context) -> None:
    usage = import_module("wgpu").BufferUsage
    data = np.arange(6, dtype=np.float32)
    buffer = ctx.device.create_buffer_with_data(
        data=data, usage=usage.STORAGE | usage.COPY_SRC
    )
    for factor in (2.0, 3.0):
        before = ctx.counters.snapshot()
        batch = Batch(ctx)
        weights = batch.import_buffer(buffer, (2, 3))
        np.testing.assert_array_equal(batch.read(weights), data.reshape(2, 3))
        scaled = batch.scale(weights, factor)
        batch.execute()
        np.testing.assert_array_equal(batch.read(scaled).reshape(-1), factor * data)
        assert (ctx.counters - before).uploads == 0
        del batch, weights, scaled
        gc.collect()
    ctx.trim()
    read: Any = ctx.device.queue.read_buffer(buffer)
    np.testing.assert_array_equal(np.frombuffer(read, np.float32), data)


def test_the_shapes_that_an_import_takes(ctx: Context) -> None:
    usage = import_module("wgpu").BufferUsage
    buffer = ctx.device.create_buffer(size=24, usage=usage.STORAGE | usage.COPY_SRC)
    tensor = ctx.zeros((2, 3), f32)
    batch = Batch(ctx)
    assert batch.ctx is ctx
    length: Any = np.int64(6)
    for source in (buffer, tensor):
        for shape in (6, length, (6,), [length]):
            assert batch.import_buffer(source, shape).shape == (6,)
        assert batch.import_buffer(source, (3, 2)).shape == (3, 2)
    assert batch.import_buffer(tensor).shape == (2, 3)
    assert batch.import_buffer(tensor, -1).shape == (6,)
    assert batch.import_buffer(tensor, (3, -1)).shape == (3, 2)


def test_an_imported_tensor_is_read_as_it_is_at_the_execution(ctx: Context) -> None:
    tensor = ctx.vector(np.ones(6), f32)
    batch = Batch(ctx)
    whole, square = batch.import_buffer(tensor), batch.import_buffer(tensor, (2, 3))
    assert (whole.shape, square.shape) == ((6,), (2, 3))
    doubled = batch.scale(square, 2.0)
    tensor.copy_from(np.arange(6))
    batch.execute()
    expected = 2 * np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(batch.read(doubled), expected)
    del batch, whole, square, doubled
    np.testing.assert_array_equal(tensor.numpy(), np.arange(6))


# ---- memory


def test_a_chain_needs_the_memory_of_a_link(fresh: Context) -> None:
    def buffers(links: int) -> int:
        fresh.trim()
        batch = Batch(fresh)
        x = batch.upload(np.ones(1 << 16))
        for _ in range(links):
            x = batch.relu(x)
        return executed(batch, fresh).buffers_created

    buffers(1)  # makes room for uniform structs, which stays
    assert buffers(36) == buffers(3) == 2


def test_what_is_held_stays_and_returns_to_the_pool_when_it_is_dropped(
    fresh: Context,
) -> None:
    batch = Batch(fresh)
    x = batch.upload(np.ones(1 << 16))
    held = [batch.scale(x, n) for n in range(8)]
    assert executed(batch, fresh).buffers_created >= 9
    assert [batch.read(handle).max() for handle in held] == list(range(8))
    held.clear()
    again = [batch.scale(x, n) for n in range(8)]
    assert executed(batch, fresh).buffers_created == 0
    assert len(again) == 8


def test_an_upload_that_nobody_reads_is_not_made(ctx: Context) -> None:
    batch = Batch(ctx)
    batch.upload(np.ones(4))
    assert executed(batch, ctx).uploads == 0
    assert batch.num_buffers == 0
