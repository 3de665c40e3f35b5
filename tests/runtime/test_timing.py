"""Timed blocks: one compute pass between two timestamps, and nothing that would end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, FeatureError, StateError, f32
from kerngen.runtime.device.backend import GpuBackend
from kerngen.runtime.device.opening import capabilities
from tests.conftest import open_software_context
from tests.runtime.kernels import ACCUMULATE, AXPY, BROKEN, internals, launch


@pytest.fixture(params=["software", "reference"])
def any_ctx(request: pytest.FixtureRequest) -> Iterator[Context]:
    """Either kind of context, of this test alone."""
    if request.param == "reference":
        yield gpu.open(adapter="reference")
        return
    with open_software_context() as ctx:
        yield ctx


def accumulate(ctx: Context, calls: int, n: int = 3000) -> Callable[[], Any]:
    """Return what adds `calls` times 1 to zeros, and the sum's array."""
    total, one = ctx.zeros(n, f32), ctx.vector(np.ones(n), f32)

    def run() -> Any:
        for _ in range(calls):
            launch(ACCUMULATE, total, one, factor=1.0)
        return total

    return run


def test_a_block_takes_part_of_the_time_around_it(any_ctx: Context) -> None:
    run = accumulate(any_ctx, 20)
    run().numpy()
    start = perf_counter()
    with any_ctx.timed() as span:
        total = run()
    assert 0 < span.seconds <= perf_counter() - start
    assert span.seconds == span.seconds
    np.testing.assert_array_equal(total.numpy(), np.full(3000, 40))


def test_more_work_takes_longer(ctx: Context) -> None:
    spans: list[float] = []
    for calls in (1, 400):
        run = accumulate(ctx, calls)
        with ctx.timed() as span:
            run()
        spans.append(span.seconds)
    assert spans[0] < spans[1]


def test_a_block_is_one_pass_of_its_own(ctx: Context) -> None:
    run = accumulate(ctx, 3)
    run()
    before = ctx.counters.snapshot()
    with ctx.timed():
        run()
    done = ctx.counters - before
    assert (done.dispatches, done.passes, done.submits) == (3, 1, 2)
    total = run()
    ctx.submit()
    assert (ctx.counters - before).submits == 3
    np.testing.assert_array_equal(total.numpy(), np.full(3000, 9))


def test_limits_and_batches_do_not_end_a_block(ctx: Context) -> None:
    run = accumulate(ctx, 5)
    dispatches, ctx.limits.dispatches = ctx.limits.dispatches, 2
    try:
        before = ctx.counters.snapshot()
        with ctx.timed() as span, ctx.batch():
            run()
        assert (ctx.counters - before).passes == 1
    finally:
        ctx.limits.dispatches = dispatches
    assert span.seconds > 0


def test_uploads_come_before_a_block(ctx: Context) -> None:
    with ctx.timed():
        x = ctx.vector([1.0, 2.0], f32)
        (z,) = launch(AXPY, x, x, alpha=2.0)
    np.testing.assert_array_equal(z.numpy(), [3, 6])


ENDERS: dict[str, Callable[[Context, Any], object]] = {
    "a read": lambda _, x: x.numpy(),
    "a submission": lambda ctx, _: ctx.submit(),
    "a copy": lambda ctx, x: ctx.copy(x[2:4], x[0:2]),
    "another timed": lambda ctx, _: ctx.timed().__enter__(),
}


@pytest.mark.parametrize("what", ENDERS)
def test_what_would_end_the_pass_is_refused(any_ctx: Context, what: str) -> None:
    x = any_ctx.vector([1.0, 2.0, 3.0, 4.0], f32)
    with any_ctx.timed() as span:
        launch(AXPY, x, x, alpha=1.0)
        with pytest.raises(StateError, match=f"the block needs {what}"):
            ENDERS[what](any_ctx, x)
        launch(AXPY, x, x, alpha=1.0)
    assert span.seconds > 0
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3, 4])


HIDDEN: dict[str, Callable[[Context, Any], object]] = {
    "clear": lambda _, x: x.clear(),
    "buffer": lambda _, x: x.buffer,
    "upload to what is in use": lambda _, x: x.copy_from(np.zeros(4)),
    "close": lambda ctx, _: ctx.close(),
    "a view that can't be bound in place": lambda _, x: launch(
        AXPY, x[1:3], x[1:3], alpha=1.0
    ),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_hidden_copies_are_refused_too(ctx: Context, what: str) -> None:
    x = ctx.vector([1.0, 2.0, 3.0, 4.0], f32)
    with ctx.timed() as span:
        launch(AXPY, x, x, alpha=1.0)
        with pytest.raises(StateError, match="the block needs"):
            HIDDEN[what](ctx, x)
    assert span.seconds > 0
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3, 4])


def test_the_seconds_of_an_open_block(any_ctx: Context) -> None:
    with any_ctx.timed() as span, pytest.raises(StateError, match="not ended"):
        _ = span.seconds
    assert "not read yet" in repr(span)
    assert str(span.seconds) in repr(span)


def test_a_refused_call_leaves_the_block_as_it_was(ctx: Context) -> None:
    run = accumulate(ctx, 2)
    with ctx.timed() as span:
        total = run()
        with pytest.raises(gpu.ValidationError):
            launch(BROKEN, ctx.vector([1, 2], gpu.u32))
    assert span.seconds > 0
    np.testing.assert_array_equal(total.numpy(), np.full(3000, 2))


def test_a_block_left_by_an_error_has_run(any_ctx: Context) -> None:
    run = accumulate(any_ctx, 2)
    with pytest.raises(ZeroDivisionError), any_ctx.timed() as span:
        run().reshape((1 // 0,))
    assert span.seconds > 0
    np.testing.assert_array_equal(run().numpy(), np.full(3000, 4))


def test_a_lost_block_has_no_time() -> None:
    with open_software_context() as ctx:
        run = accumulate(ctx, 2)
        with ctx.timed() as span:
            run()
            internals(ctx)._recorder.lose()
            total = run()
        with pytest.raises(StateError, match="nothing was timed"):
            _ = span.seconds
        np.testing.assert_array_equal(total.numpy(), np.full(3000, 2))


def test_a_closed_context_has_no_times() -> None:
    with open_software_context() as ctx, ctx.timed() as span:
        pass
    with pytest.raises(gpu.ContextError, match="closed"):
        _ = span.seconds


def test_an_adapter_without_timestamps(ctx: Context) -> None:
    able = capabilities(ctx.device, "")
    assert able.timestamps
    backend = GpuBackend(
        ctx.device,
        replace(able, timestamps=False),
        kind="software",
        adapter_name="",
        owned=False,
    )
    with (
        pytest.raises(
            FeatureError, match="adapter lacks the feature 'timestamp-query'"
        ),
        Context(backend).timed(),
    ):
        pass


def test_a_device_opened_without_timestamps(ctx: Context) -> None:
    bare = gpu.open(ctx.device.adapter.request_device_sync())
    missing = (
        "device was opened without the feature 'timestamp-query', which its adapter"
    )
    with pytest.raises(FeatureError, match=missing), bare.timed():
        pass
    with pytest.raises(FeatureError, match=missing), bare.profile():
        pass
    bare.close()
