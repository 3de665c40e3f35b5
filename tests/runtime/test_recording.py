"""What is recorded, when it is submitted, and what a repeated step creates."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from kerngen.runtime import Context, Counters, Vector, f32, u32
from kerngen.runtime.device.arena import CHUNK_BYTES
from tests.runtime.kernels import (
    ACCUMULATE,
    AXPY,
    CENTRE,
    COUNT,
    MATMUL,
    internals,
    launch,
)


def ramp(ctx: Context, n: int) -> Vector[f32]:
    return ctx.vector(np.arange(n), f32)


def step(x: Vector[f32], y: Vector[f32]) -> Vector[f32]:
    """Run a step with outputs, temporaries, in-place work and a read."""
    (z,) = launch(AXPY, x, y, alpha=2.0)
    (centred,) = launch(CENTRE, z)
    launch(ACCUMULATE, centred, x, factor=0.5)
    (result,) = launch(AXPY, centred, z, alpha=-1.0)
    result.numpy()
    return y


def done(ctx: Context, before: Counters) -> Counters:
    return ctx.counters - before


def test_calls_are_submitted_together_at_a_read(ctx: Context) -> None:
    x, y = ramp(ctx, 100), ramp(ctx, 100)
    ctx.submit()
    before = ctx.counters.snapshot()
    (z,) = launch(AXPY, x, y, alpha=3.0)
    (z,) = launch(AXPY, z, y, alpha=1.0)
    assert done(ctx, before).submits == 0
    np.testing.assert_array_equal(z.numpy(), 5 * np.arange(100, dtype=np.float32))
    after = done(ctx, before)
    assert (after.dispatches, after.encoders, after.passes, after.submits) == (
        2,
        1,
        1,
        1,
    )


def test_a_repeated_step_creates_nothing(ctx: Context) -> None:
    x, y = ramp(ctx, 1000), ramp(ctx, 1000)
    step(x, y)
    before = ctx.counters.snapshot()
    for _ in range(3):
        step(x, y)
    after = done(ctx, before)
    created = (
        after.pipelines_created,
        after.bind_groups_created,
        after.buffers_created,
    )
    assert created == (0, 0, 0)
    assert after.dispatches == 3 * 5
    assert (after.encoders, after.passes, after.submits) == (3, 3, 3)


def test_a_repeated_step_with_uploads_creates_nothing(ctx: Context) -> None:
    x = ramp(ctx, 64)

    def train(batch: int) -> None:
        with ctx.batch():
            for number in range(3):
                y = ctx.vector(np.full(64, batch + number), f32)
                launch(ACCUMULATE, x, y, factor=1.0)
                x.copy_from(np.zeros(64))

    for batch in range(2):
        train(batch)
    before = ctx.counters.snapshot()
    train(5)
    after = done(ctx, before)
    created = (
        after.pipelines_created,
        after.bind_groups_created,
        after.buffers_created,
    )
    assert created == (0, 0, 0)
    assert (after.encoders, after.submits) == (1, 1)


def test_a_batch_is_one_submission(ctx: Context) -> None:
    x, y = ramp(ctx, 10), ramp(ctx, 10)
    ctx.submit()
    ctx.limits.dispatches, usual = 2, ctx.limits.dispatches
    try:
        before = ctx.counters.snapshot()
        with ctx.batch(), ctx.batch():
            for _ in range(10):
                launch(ACCUMULATE, x, y, factor=1.0)
        assert done(ctx, before).submits == 1
        before = ctx.counters.snapshot()
        for _ in range(10):
            launch(ACCUMULATE, x, y, factor=1.0)
        assert done(ctx, before).submits == 5
    finally:
        ctx.limits.dispatches = usual
    np.testing.assert_array_equal(x.numpy(), 21 * np.arange(10, dtype=np.float32))


def submitted_at(ctx: Context, calls: int) -> list[int]:
    """Return after how many calls of a loop there was a submission."""
    total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
    x.numpy()
    places: list[int] = []
    for call in range(1, calls + 1):
        before = ctx.counters.submits
        launch(ACCUMULATE, total, x, factor=1.0)
        if ctx.counters.submits > before:
            places.append(call)
    assert total.item() == calls
    return places


def test_an_idle_device_gets_work_early_and_then_larger_pieces(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kerngen.runtime.device.recorder._PAUSE", 60.0)
    places = submitted_at(ctx, 1000)
    assert places[:3] == [8, 8 + 24, 8 + 24 + 40]
    assert len(places) < 12
    assert submitted_at(ctx, 1000) == places  # after a read the device is idle


def test_a_device_without_work_for_a_while_gets_it_early(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kerngen.runtime.device.recorder._PAUSE", 0.0)
    assert submitted_at(ctx, 40) == [8, 16, 24, 32, 40]


def test_temporaries_are_bounded(ctx: Context) -> None:
    x = ramp(ctx, 10)
    ctx.submit()
    ctx.limits.temporary_bytes, usual = 1, ctx.limits.temporary_bytes
    try:
        before = ctx.counters.snapshot()
        launch(CENTRE, x)
        assert done(ctx, before).submits == 1
    finally:
        ctx.limits.temporary_bytes = usual


def test_temporaries_that_calls_share_count_once(ctx: Context) -> None:
    """The pool gives them to each call in turn, so more calls take no more memory."""
    x, y = ramp(ctx, 10), ramp(ctx, 10)
    launch(CENTRE, x)
    x.numpy()  # the device is idle, and gets work after 8 dispatches
    usual = ctx.limits.temporary_bytes
    ctx.limits.temporary_bytes = 300  # a block has 256
    try:
        before = ctx.counters.snapshot()
        for each in (x, y, x):
            launch(CENTRE, each)
        assert done(ctx, before).submits == 0
    finally:
        ctx.limits.temporary_bytes = usual


def test_calls_of_a_batch_that_fails_still_count(ctx: Context) -> None:
    x, y = ramp(ctx, 10), ramp(ctx, 10)

    def fail() -> None:
        with ctx.batch():
            launch(ACCUMULATE, x, y, factor=1.0)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    before = ctx.counters.snapshot()
    ctx.submit()
    assert done(ctx, before).submits == 0
    np.testing.assert_array_equal(x.numpy(), 2 * np.arange(10, dtype=np.float32))


def test_uniforms_fill_several_chunks(ctx: Context) -> None:
    total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
    calls = CHUNK_BYTES // 32 + 100  # 32: no adapter aligns uniforms to less
    with ctx.batch():
        for number in range(calls):
            launch(ACCUMULATE, total, x, factor=float(number % 7))
    assert total.numpy()[0] == sum(number % 7 for number in range(calls))


def test_uniform_chunks_are_used_again(ctx: Context) -> None:
    total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
    calls = CHUNK_BYTES // 32
    with ctx.batch():
        for number in range(calls):
            launch(ACCUMULATE, total, x, factor=float(number % 3))
    before = ctx.counters.snapshot()
    with ctx.batch():
        for number in range(calls):
            launch(ACCUMULATE, total, x, factor=float(number % 3))
    assert done(ctx, before).buffers_created == 0
    assert total.item() == 2 * sum(number % 3 for number in range(calls))


def test_uniforms_that_the_device_has_are_not_uploaded_again(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
    uploads: list[int] = []
    queue = cast("Any", type(ctx.device.queue))
    write = queue.write_buffer

    def counted(self: object, buffer: object, offset: int, data: memoryview) -> None:
        uploads.append(data.nbytes)
        write(self, buffer, offset, data)

    def add(*factors: float) -> int:
        """Submit calls with these factors; return how many uploads that took."""
        uploads.clear()
        with ctx.batch():
            for factor in factors:
                launch(ACCUMULATE, total, x, factor=factor)
        ctx.submit()
        return len(uploads)

    add(1.0, 2.0)
    monkeypatch.setattr(queue, "write_buffer", counted)
    assert [add(1.0, 2.0), add(1.0), add(1.0, 4.0), add(1.0, 2.0)] == [0, 0, 1, 1]
    internals(ctx)._recorder.lose()
    assert add(1.0, 2.0) == 1
    assert total.item() == 18


def test_the_same_numbers_are_packed_once(ctx: Context) -> None:
    """The very same, as 0.0 and -0.0 are equal, but not one."""
    one, x, y = ctx.vector([1.0], f32), ctx.vector([-1.0], f32), ctx.vector([2.0], f32)
    half, zero = 0.5, 0.0
    factors = [half] * 50 + [2 * half, half, zero, -zero, -half]
    results: list[Vector[f32]] = []
    with ctx.batch():
        launch(AXPY, one, y, alpha=half)
        chunk = internals(ctx)._recorder._arena._chunks[0]
        used: list[int] = [chunk.used]
        for factor in factors:
            results += launch(AXPY, x, y, alpha=factor)
            used.append(chunk.used)
    assert len(set(used)) == 6
    expected = [2 - factor for factor in factors]
    np.testing.assert_array_equal([each.item() for each in results], expected)


def test_shared_uniforms_are_packed_anew_in_each_recording(ctx: Context) -> None:
    """A kernel without scalars packs once per recording, and not where it was before."""
    x, total = ctx.zeros(3, u32), ctx.zeros(1, f32)
    ctx.submit()
    for others in (0, 3, 1):
        with ctx.batch():
            for _ in range(others):
                launch(ACCUMULATE, total, ctx.zeros(1, f32), factor=1.0)
            launch(COUNT, x)
            launch(COUNT, x)
    np.testing.assert_array_equal(x.numpy(), 6 * np.arange(3))


@pytest.mark.parametrize("n", [65_535, 65_536, 70_001, 131_071])
def test_workgroups_fold_into_two_dimensions(ctx: Context, n: int) -> None:
    x = ctx.vector(np.full(n, 3), u32)
    launch(COUNT, x)
    np.testing.assert_array_equal(x.numpy(), 3 + np.arange(n, dtype=np.uint32))


def test_an_empty_domain_is_not_recorded(ctx: Context) -> None:
    x, y = ctx.empty(0, f32), ctx.empty(0, f32)
    ctx.submit()
    before = ctx.counters.snapshot()
    (z,) = launch(AXPY, x, y, alpha=1.0)
    assert z.shape == (0,)
    assert z.numpy().shape == (0,)
    assert done(ctx, before).dispatches == 0
    assert done(ctx, before).submits == 0


def test_a_reduction_over_an_empty_axis_is_recorded(ctx: Context) -> None:
    (c,) = launch(MATMUL, ctx.empty((2, 0), f32), ctx.empty((0, 3), f32))
    np.testing.assert_array_equal(c.numpy(), np.zeros((2, 3), np.float32))


def test_out_is_written_and_returned(ctx: Context) -> None:
    x = ramp(ctx, 7)
    out = ctx.zeros(7, f32)
    (z,) = launch(AXPY, x, x, alpha=1.0, out=(out,))
    assert z is out
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(7, dtype=np.float32))
