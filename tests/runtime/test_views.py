"""Views, aliases and the caller's own buffers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import (
    AliasError,
    Context,
    ContextError,
    DtypeError,
    ShapeError,
    ValidationError,
    f16,
    f32,
    u32,
)
from tests.runtime.kernels import ACCUMULATE, AXPY, CENTRE, DOUBLED, SWAP, launch
from tests.runtime.usages import COPY, STORAGE

# ---- aliases


def test_one_tensor_as_two_inputs(ctx: Context) -> None:
    x = ctx.vector([1.0, 2.0], f32)
    (z,) = launch(AXPY, x, x, alpha=1.0)
    np.testing.assert_array_equal(z.numpy(), [2.0, 4.0])


def test_out_must_not_be_an_input(ctx: Context) -> None:
    x, y = ctx.zeros(4, f32), ctx.zeros(4, f32)
    with pytest.raises(
        AliasError, match=r"axpy \(hand.kern:1\): 'y' and 'z' overlap.*'z' is written"
    ):
        launch(AXPY, x, y, alpha=1.0, out=(y,))


def test_a_written_argument_must_not_be_another(ctx: Context) -> None:
    x = ctx.zeros(8, f32)
    with pytest.raises(AliasError, match="'total' and 'x' overlap"):
        launch(ACCUMULATE, x, x, factor=1.0)
    with pytest.raises(AliasError, match="'a' and 'b' overlap"):
        launch(SWAP, x[0:5], x[3:8])


def test_a_refused_call_records_nothing(ctx: Context) -> None:
    x = ctx.zeros(8, f32)
    ctx.submit()
    before = ctx.counters.snapshot()
    with pytest.raises(AliasError):
        launch(SWAP, x[0:5], x[3:8])
    ctx.submit()
    after = ctx.counters - before
    assert (after.calls, after.encoders, after.submits) == (0, 0, 0)


@pytest.mark.parametrize("start", [64, 65, 70])
def test_disjoint_views_of_one_buffer(ctx: Context, start: int) -> None:
    array = np.arange(140, dtype=np.float32)
    x = ctx.vector(array, f32)
    n = 140 - start
    launch(ACCUMULATE, x[:n][:32], x[start:][:32], factor=2.0)
    array[:32] += 2 * array[start : start + 32]
    np.testing.assert_array_equal(x.numpy(), array)
    launch(ACCUMULATE, x[start:][:32], x[:32], factor=1.0)
    array[start : start + 32] += array[:32]
    np.testing.assert_array_equal(x.numpy(), array)


def test_disjoint_views_that_are_both_written_need_no_copy(ctx: Context) -> None:
    x = ctx.vector(np.arange(256), f32)
    ctx.submit()
    before = ctx.counters.snapshot()
    launch(SWAP, x[:64], x[128:192])
    assert (ctx.counters - before).copies == 0
    expected = np.arange(256)
    expected[:64], expected[128:192] = np.arange(128, 192), np.arange(64)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_out_may_be_a_disjoint_view(ctx: Context) -> None:
    x = ctx.vector(np.arange(96), f32)
    out = x[65:69]
    (z,) = launch(AXPY, x[:4], x[1:5], alpha=10.0, out=(out,))
    assert z is out
    np.testing.assert_array_equal(out.numpy(), [1.0, 12.0, 23.0, 34.0])
    np.testing.assert_array_equal(x.numpy()[:65], np.arange(65))
    np.testing.assert_array_equal(x.numpy()[69:], np.arange(69, 96))


# ---- views


def test_rows_and_reshape_share_memory(ctx: Context) -> None:
    x = ctx.matrix(np.arange(60).reshape(12, 5), f32)
    view = x[3:9].reshape((2, -1))
    assert view.shape == (2, 15)
    np.testing.assert_array_equal(view.numpy().ravel(), np.arange(15, 45))
    view.copy_from(np.zeros((2, 15)))
    np.testing.assert_array_equal(x[2:4].numpy(), [[10, 11, 12, 13, 14], [0] * 5])
    assert x[-2:].shape == (2, 5)
    assert x[5:3].shape == (0, 5)
    assert x.rows(1, 2).shape == (1, 5)
    assert x.reshape(60).reshape((3, 4, 5)).reshape([60]).shape == (60,)
    assert x.reshape(-1, 30).reshape(3, 4, 5).shape == (3, 4, 5)


def test_a_view_keeps_its_memory(ctx: Context) -> None:
    view = ctx.vector(np.arange(100), f32)[10:20]
    others = [ctx.zeros(100, f32) for _ in range(3)]
    np.testing.assert_array_equal(view.numpy(), np.arange(10, 20))
    assert len(others) == 3


def test_a_tensor_in_a_reference_cycle_gives_its_memory_back_whole(
    ctx: Context,
) -> None:
    x = ctx.vector(np.full(5000, 7.0), f32)
    before = ctx.counters.snapshot()
    cycle: list[Any] = [x]
    cycle.append(cycle)
    del x, cycle
    gc.collect()
    y = ctx.vector(np.arange(5000), f32)
    assert (ctx.counters - before).buffers_created == 0
    np.testing.assert_array_equal(y.numpy(), np.arange(5000))


WRONG_VIEWS: tuple[Callable[[Any], object], ...] = (
    lambda t: t[0],
    lambda t: t[::2],
    lambda t: t[1, 2],
    lambda t: t.rows(2, 9),
    lambda t: t.rows(3, 2),
    lambda t: t.reshape((7, 2)),
    lambda t: t.reshape((-1, -1)),
    lambda t: t.reshape((-1, 5)),
    lambda t: t.reshape((-2, -6)),
    lambda t: t.reshape(("3", "4")),
    lambda t: t.reshape("3", "4"),
    lambda t: t.reshape(3, (4,)),
)


@pytest.mark.parametrize("wrong", WRONG_VIEWS)
def test_wrong_views(ctx: Context, wrong: Callable[[Any], object]) -> None:
    with pytest.raises(ShapeError):
        wrong(ctx.zeros((4, 3), f32))


def test_a_scalar_has_no_rows(ctx: Context) -> None:
    x: Any = ctx.scalar(1.0, f32)
    with pytest.raises(ShapeError, match="rank 0"):
        x[0:1]
    with pytest.raises(ShapeError, match="rank 0"):
        x.rows(0, 1)


def test_empty_views_are_arguments_too(ctx: Context) -> None:
    x = ctx.vector(np.arange(8), f32)
    (z,) = launch(AXPY, x[3:3], x[5:5], alpha=1.0)
    assert z.numpy().shape == (0,)
    launch(ACCUMULATE, x[2:2], x[2:2], factor=1.0)
    (y,) = launch(CENTRE, x[4:4])
    assert y.shape == (0,)


def test_views_of_halves_start_in_the_middle_of_a_word(ctx: Context) -> None:
    array = np.arange(21, dtype=np.float16)
    x = ctx.vector(array, f16)
    np.testing.assert_array_equal(x.numpy(), array)
    view = x[3:8]
    np.testing.assert_array_equal(view.numpy(), array[3:8])
    (y,) = launch(DOUBLED, view)
    np.testing.assert_array_equal(y.numpy(), 2 * array[3:8])
    view.copy_from(np.full(5, -1.0))
    array[3:8] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    x[1:4].copy_from(x[8:11])
    array[1:4] = array[8:11]
    np.testing.assert_array_equal(x.numpy(), array)
    x[19:21].copy_from(x[0:2])
    array[19:21] = array[0:2]
    np.testing.assert_array_equal(x.numpy(), array)


# ---- copies


def test_overlapping_copies_go_through_a_temporary(ctx: Context) -> None:
    array = np.arange(50, dtype=np.float32)
    x = ctx.vector(array, f32)
    x[1:41].copy_from(x[0:40])
    array[1:41] = array[0:40].copy()
    np.testing.assert_array_equal(x.numpy(), array)
    x.copy_from(x)
    np.testing.assert_array_equal(x.numpy(), array)


def test_wrong_copies(ctx: Context) -> None:
    x: Any = ctx.zeros(4, f32)
    with pytest.raises(ShapeError, match=r"expected shape \(4,\), got \(3,\)"):
        x.copy_from(np.zeros(3))
    with pytest.raises(ShapeError, match=r"expected shape \(4,\), got \(2, 2\)"):
        x.copy_from(ctx.zeros((2, 2), f32))
    with pytest.raises(DtypeError, match="expected f32 elements, got u32"):
        x.copy_from(ctx.zeros(4, u32))
    with (
        gpu.open(adapter="reference") as other,
        pytest.raises(ContextError, match="a tensor belongs to Context"),
    ):
        x.copy_from(other.zeros(4, f32))


# ---- buffers


def test_a_wrapped_buffer_is_used_in_place(ctx: Context) -> None:
    device = ctx.device
    buffer = device.create_buffer(size=1024, usage=STORAGE | COPY)
    device.queue.write_buffer(buffer, 256, np.arange(10, dtype=np.float32))
    x: Any = ctx.wrap(buffer, 10, f32, offset=256)
    y: Any = ctx.wrap(buffer, (5, 2), f32, offset=512)
    y.copy_from(np.zeros((5, 2)))
    launch(ACCUMULATE, y.reshape(10), x, factor=3.0)
    ctx.submit()
    raw = np.frombuffer(device.queue.read_buffer(buffer, 512, 40), np.float32)
    np.testing.assert_array_equal(raw, 3 * np.arange(10))
    with pytest.raises(AliasError):
        launch(ACCUMULATE, x, ctx.wrap(buffer, 10, f32, offset=260), factor=1.0)


def test_wrapped_buffers_go_though_nothing_is_allocated(ctx: Context) -> None:
    kept = weakref.WeakSet[Any]()
    y = ctx.zeros(4, f32)
    for _ in range(20):
        buffer = ctx.device.create_buffer(size=256, usage=STORAGE | COPY)
        kept.add(buffer)
        launch(ACCUMULATE, y, ctx.wrap(buffer, 4, f32), factor=1.0)
        ctx.submit()
        del buffer
    gc.collect()
    assert len(kept) <= 2


def test_a_tensor_hands_out_its_buffer(ctx: Context) -> None:
    wgpu: Any = import_module("wgpu")
    x = ctx.vector(np.arange(16), f32)
    launch(ACCUMULATE, x, ctx.vector(np.ones(16), f32), factor=1.0)
    buffer = x.buffer
    assert isinstance(buffer, wgpu.GPUBuffer)
    device = ctx.device
    raw = np.frombuffer(device.queue.read_buffer(buffer, 0, 64), np.float32)
    np.testing.assert_array_equal(raw, np.arange(1, 17))
    again: Any = ctx.wrap(buffer, 16, f32)
    with pytest.raises(AliasError):
        launch(ACCUMULATE, x, again, factor=1.0)
    del x, again
    for _ in range(4):
        fresh = ctx.zeros(16, f32)
        assert fresh.buffer is not buffer


def test_wrong_buffers(ctx: Context) -> None:
    device = ctx.device
    wrap: Any = ctx.wrap
    plain = device.create_buffer(size=64, usage=COPY)
    good = device.create_buffer(size=64, usage=STORAGE | COPY)
    with pytest.raises(DtypeError, match=r"expected a wgpu.GPUBuffer, got a bytearray"):
        wrap(bytearray(64), 4, f32)
    with pytest.raises(ValidationError, match="STORAGE"):
        wrap(plain, 4, f32)
    with pytest.raises(ShapeError, match="ends at byte 68"):
        wrap(good, 17, f32)
    with pytest.raises(ShapeError, match="offset 2"):
        wrap(good, 4, f32, offset=2)
    other = device.adapter.request_device_sync()
    foreign = other.create_buffer(size=64, usage=STORAGE)
    with pytest.raises(ContextError, match="another device"):
        wrap(foreign, 4, f32)
    other.destroy()


def test_a_destroyed_buffer_is_reported_and_forgotten(ctx: Context) -> None:
    device = ctx.device
    buffer = device.create_buffer(size=256, usage=STORAGE | COPY)
    x: Any = ctx.wrap(buffer, 4, f32)
    launch(ACCUMULATE, x, ctx.zeros(4, f32), factor=1.0)
    buffer.destroy()
    with pytest.raises(ValidationError, match="'accumulate'"):
        ctx.submit()
    y = ctx.vector([1.0], f32)
    (z,) = launch(AXPY, y, y, alpha=1.0)
    assert z.numpy()[0] == 2.0


def test_a_mapped_buffer_is_reported(ctx: Context) -> None:
    device = ctx.device
    buffer = device.create_buffer(
        size=256, usage=STORAGE | COPY, mapped_at_creation=True
    )
    x: Any = ctx.wrap(buffer, 4, f32)
    launch(ACCUMULATE, x, ctx.zeros(4, f32), factor=1.0)
    with pytest.raises(ValidationError, match=r"mapped .*'accumulate'"):
        ctx.submit()
    buffer.unmap()
    x.copy_from(np.arange(4))
    launch(ACCUMULATE, x, ctx.vector(np.ones(4), f32), factor=1.0)
    np.testing.assert_array_equal(x.numpy(), 1 + np.arange(4))


def test_a_view_of_halves_at_an_odd_place_is_written_too(ctx: Context) -> None:
    array = np.arange(40, dtype=np.float16)
    x = ctx.vector(array, f16)
    x[1:6].copy_from(np.full(5, 9.0))
    array[1:6] = 9
    np.testing.assert_array_equal(x.numpy(), array)
