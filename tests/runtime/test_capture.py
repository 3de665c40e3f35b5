"""Captured calls: what a replay leaves equals what the calls leave, bit for bit."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import Context, Vector, f16, f32, u32
from kerngen_kernels import elementwise, layout, matmul, norm, optim, softmax
from tests.conftest import open_software_context
from tests.runtime.kernels import (
    ACCUMULATE,
    AXPY,
    CENTRE,
    COUNT,
    STAMP,
    internals,
    launch,
)

Values = NDArray[np.float32]
RNG = np.random.default_rng(3)


def draw(*shape: int) -> Values:
    return RNG.standard_normal(shape, np.float32)


class Network:
    """A step with temporaries, split products, views, copies and changes in place."""

    def __init__(self, ctx: Context) -> None:
        rng = np.random.default_rng(0)
        self.ctx = ctx
        self.x = ctx.zeros((6, 700), f32)
        self.weight = ctx.matrix(rng.standard_normal((700, 9)), f32)
        self.gain = ctx.vector(rng.standard_normal(9), f32)
        self.m, self.v = ctx.zeros(6300, f32), ctx.zeros(6300, f32)
        self.sums = ctx.zeros((12, 9), f32)

    def run(self, rate: float, step: int) -> tuple[gpu.Tensor[f32, Any], ...]:
        hidden = matmul.matmul_nn(self.x, self.weight)
        normed = norm.rmsnorm(hidden, self.gain)
        result = softmax.softmax(normed)
        self.sums[3:9].copy_from(result)
        elementwise.axpy(result.reshape(-1), self.sums[3:9].reshape(-1), alpha=0.25)
        ones = elementwise.exp(self.ctx.zeros(54, f32))
        gradient = matmul.matmul_tn(self.x, result)
        optim.adamw(
            self.weight.reshape(-1),
            gradient.reshape(-1),
            self.m,
            self.v,
            lr=rate,
            step=step,
        )
        return result, ones, gradient

    def state(self) -> list[Values]:
        return [t.numpy() for t in (self.weight, self.m, self.v, self.sums)]


def all_equal(results: Any, expected: Any) -> None:
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, right)


def test_replays_equal_calls(either: Context) -> None:
    one, other = Network(either), Network(either)
    with either.capture() as step:
        outputs = other.run(step.scalar("rate", 0.1), step.scalar("number", 1))
    inputs = [draw(6, 700) for _ in range(4)]
    for number, x in enumerate(inputs, start=1):
        rate = 0.1 / number
        one.x.copy_from(x)
        expected = [each.numpy() for each in one.run(rate, number)]
        other.x.copy_from(x)
        step.replay(rate=rate, number=number)
        all_equal([each.numpy() for each in outputs], expected)
        all_equal(other.state(), one.state())


def test_a_block_runs_nothing(either: Context) -> None:
    x = either.vector([1.0, -1.0], f32)
    y, z = either.vector([5.0, 6.0], f32), either.vector([7.0], f32)
    with either.capture() as step:
        elementwise.relu(x, out=y)
        z.clear()
    np.testing.assert_array_equal(y.numpy(), [5, 6])
    assert z.item() == 7
    step.replay()
    np.testing.assert_array_equal(y.numpy(), [1, 0])
    assert z.item() == 0


def test_replays_are_in_the_order_of_calls(either: Context) -> None:
    total, x = either.zeros(1, f32), either.vector([1.0], f32)
    with either.capture() as step:
        launch(ACCUMULATE, total, x, factor=1.0)
    with either.batch():
        step.replay()
        launch(ACCUMULATE, x, either.vector([9.0], f32), factor=1.0)
        step.replay(times=2)
        x.copy_from([100.0])
        step.replay(0)
        step.replay()
    assert total.item() == 1 + 10 + 10 + 100


def test_other_calls_leave_its_uniforms_alone(either: Context) -> None:
    total, x = either.zeros(1, f32), either.vector([1.0], f32)
    other = either.zeros(1, f32)
    launch(ACCUMULATE, other, x, factor=3.0)
    with either.capture() as step:
        launch(ACCUMULATE, total, x, factor=1.0)
    for factor in range(5):
        launch(ACCUMULATE, other, x, factor=float(10 * factor))
        step.replay()
        launch(ACCUMULATE, other, x, factor=float(factor))
        either.submit()
    assert total.item() == 5


def test_other_calls_leave_its_memory_alone(either: Context) -> None:
    x = either.vector(draw(1000), f32)
    expected = launch(CENTRE, x)[0].numpy()
    with either.capture() as step:
        y = launch(CENTRE, launch(CENTRE, x)[0])[0]
        either.zeros(1000, f32)
    step.replay()
    before = y.numpy()
    np.testing.assert_allclose(before, expected, atol=1e-6)
    others = [either.vector(np.full(1000, np.nan), f32) for _ in range(8)]
    others += [either.vector([np.nan], f32) for _ in range(8)]
    step.replay()
    np.testing.assert_array_equal(y.numpy(), before)
    assert all(np.isnan(other.numpy()).all() for other in others)


def test_it_keeps_tensors_that_the_program_drops(either: Context) -> None:
    x, source = either.vector([1.0, -2.0], f32), either.vector([3.0, 4.0], f32)
    with either.capture() as step:
        y = elementwise.relu(x)
        z = either.empty(2, f32)
        z.copy_from(source)
    del x, source
    gc.collect()
    others = [either.vector([9.0, 9.0], f32) for _ in range(9)]
    step.replay()
    np.testing.assert_array_equal(y.numpy(), [1, 0])
    np.testing.assert_array_equal(z.numpy(), [3, 4])
    assert len(others) == 9


def test_a_copy_within_a_tensor_keeps_what_it_goes_through(either: Context) -> None:
    x = either.vector(np.arange(512), f32)
    with either.capture() as step:
        x[:256].copy_from(x[256:])
    others = [either.vector(np.full(256, 7), f32) for _ in range(4)]
    step.replay()
    np.testing.assert_array_equal(x.numpy(), 2 * [*range(256, 512)])
    assert all((other.numpy() == 7).all() for other in others)


def test_its_memory_returns_once_it_is_dropped(either: Context) -> None:
    x = either.vector(draw(100), f32)

    def leave() -> None:
        with either.capture() as step:
            for _ in range(10):
                launch(CENTRE, x)
        step.replay()

    leave()
    before = either.counters.snapshot()
    gc.disable()  # no cycle may keep it until the collector comes
    try:
        for _ in range(3):
            leave()
    finally:
        gc.enable()
    chunks = 0 if either.kind == "reference" else 3
    assert (either.counters - before).buffers_created == chunks


def test_scalars_change_within_a_recording(either: Context) -> None:
    total, x = either.zeros(3, f32), either.vector([1.0, 10.0, 100.0], f32)
    with either.capture() as step:
        factor = step.scalar("factor", 1.0)
        launch(ACCUMULATE, total, x, factor=factor)
        launch(ACCUMULATE, total, x, factor=factor)
        launch(ACCUMULATE, total, x, factor=0.5)
    before = either.counters.snapshot()
    with either.batch():
        step.replay(factor=2.0)
        step.replay(factor=3)
        step.replay()
        step.replay(2, factor=-1.0)
    assert (either.counters - before).submits == (either.kind != "reference")
    sums = 2 * (2 + 3 + 3 - 1 - 1) + 5 * 0.5
    np.testing.assert_array_equal(total.numpy(), sums * x.numpy())


def test_what_replays_count(ctx: Context) -> None:
    x = ctx.vector(draw(64), f32)
    launch(ACCUMULATE, ctx.zeros(64, f32), x, factor=2.0)
    with ctx.capture() as step:
        y = launch(CENTRE, x)[0]
        launch(ACCUMULATE, y, x, factor=step.scalar("factor", 1.0))
        z = ctx.zeros(64, f32)
    ctx.submit()
    before, writes = ctx.counters.snapshot(), (x.writes, y.writes, z.writes)
    step.replay(3)
    done = ctx.counters - before
    assert (done.calls, done.dispatches, done.copies) == (6, 9, 3)
    assert done.buffers_created == 0
    now = (x.writes, y.writes, z.writes)
    assert np.subtract(now, writes).tolist() == [0, 6, 3]


def test_replays_count_as_writes(either: Context) -> None:
    x, total = either.vector([1.0], f32), either.zeros(1, f32)
    with either.capture() as step:
        y = elementwise.relu(x)
        launch(ACCUMULATE, total, x, factor=1.0)
        launch(ACCUMULATE, total, x, factor=1.0)
    before = x.writes, y.writes, total.writes
    step.replay()
    step.replay(2)
    assert (x.writes, y.writes, total.writes) == tuple(np.add(before, (0, 3, 6)))


def test_a_long_capture_is_submitted_in_pieces(ctx: Context) -> None:
    total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
    with ctx.capture() as step:
        for number in range(50):
            launch(ACCUMULATE, total, x, factor=float(number))
    ctx.submit()
    ctx.limits.dispatches, usual = 7, ctx.limits.dispatches
    try:
        before = ctx.counters.snapshot()
        step.replay(2)
        total.copy_from([0.5])  # overtakes nothing
        step.replay()
        assert (ctx.counters - before).submits >= 150 // 7
        before = ctx.counters.snapshot()
        with ctx.batch():
            step.replay(2)
        assert (ctx.counters - before).submits == 1
    finally:
        ctx.limits.dispatches = usual
    assert total.item() == 0.5 + 3 * sum(range(50))


def test_replays_are_timed_and_profiled(ctx: Context) -> None:
    x = ctx.vector(draw(64), f32)
    with ctx.capture() as step:
        y = launch(CENTRE, x)[0]
        launch(ACCUMULATE, y, x, factor=step.scalar("factor", 1.0))
    with ctx.timed() as span:
        step.replay(3)
    assert span.seconds > 0
    expected = y.numpy()
    with ctx.profile() as profile:
        step.replay(2)
    kernels = [event.kernel for event in profile.events]
    assert kernels == ["centre", "centre", "accumulate"] * 2
    np.testing.assert_array_equal(y.numpy(), expected)
    with ctx.capture() as copying:
        y.clear()
    with ctx.timed(), pytest.raises(gpu.StateError, match="a copy"):
        copying.replay()


def test_without_the_library_behind_wgpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of wgpu that were not tried are used by their public names."""
    monkeypatch.setattr("kerngen.runtime.device.native.TESTED", {})
    with open_software_context() as ctx:
        total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
        with ctx.capture() as step:
            launch(ACCUMULATE, total, x, factor=2.0)
            launch(COUNT, ctx.zeros(5, u32))
        step.replay(3)
        assert total.item() == 6


# ---- what can't be captured


REFUSED: dict[str, Callable[[Context, Vector[f32]], object]] = {
    "a read": lambda _, x: x.numpy(),
    "an upload": lambda _, x: x.copy_from([1.0, 2.0, 3.0]),
    "another capture()": lambda ctx, _: ctx.capture().__enter__(),
    "a timed()": lambda ctx, _: ctx.timed().__enter__(),
    "a profile()": lambda ctx, _: ctx.profile().__enter__(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_block_may_not_hold(either: Context, what: str) -> None:
    x, y = either.vector([1.0, -2.0, 3.0], f32), either.zeros(3, f32)
    captures: list[gpu.Capture] = []

    def capture() -> None:
        with either.capture() as step:
            captures.append(step)
            elementwise.relu(x, out=y)
            REFUSED[what](either, x)

    with pytest.raises(gpu.StateError, match=re.escape(f"the block needs {what}")):
        capture()
    with pytest.raises(gpu.StateError, match="an error ended the capture's block"):
        captures[0].replay()
    np.testing.assert_array_equal(y.numpy(), np.zeros(3))
    np.testing.assert_array_equal(elementwise.relu(x).numpy(), [1, 0, 3])


def test_an_upload_of_new_tensors_and_a_replay_are_refused(either: Context) -> None:
    x = either.vector([1.0], f32)
    with either.capture() as first:
        elementwise.relu(x)
    with pytest.raises(gpu.StateError, match="an upload"), either.capture():
        either.vector([1.0], f32)
    with pytest.raises(gpu.StateError, match=r"a replay\(\)"), either.capture():
        first.replay()
    first.replay()


def test_a_copy_by_way_of_the_host_is_refused(ctx: Context) -> None:
    """A view of 16-bit elements that begins within a word is read and written again."""
    x = ctx.tensor(np.arange(5, dtype=np.float16), f16)
    y = ctx.empty(3, f16)
    with pytest.raises(gpu.StateError, match="a read"), ctx.capture():
        y.copy_from(x[1:4])


def test_an_error_in_a_block_leaves_the_context_usable(either: Context) -> None:
    x = either.vector([1.0, -2.0], f32)

    def capture(error: BaseException) -> None:
        with either.capture():
            elementwise.relu(x)
            raise error

    with pytest.raises(gpu.ShapeError), either.capture():
        elementwise.add(x, either.zeros(3, f32))
    for error in (KeyboardInterrupt(), KeyError()):
        with pytest.raises(type(error)):
            capture(error)
    with either.capture() as step:
        y = elementwise.relu(x)
    step.replay()
    np.testing.assert_array_equal(y.numpy(), [1, 0])


# ---- scalars


def test_scalars_that_cant_be_declared(either: Context) -> None:
    with either.capture() as step:
        for name in ("times", "a b", ""):
            with pytest.raises(gpu.ArgumentError, match="can't be declared"):
                step.scalar(name, 1.0)
        rate = step.scalar("rate", 1.0)
        with pytest.raises(gpu.ArgumentError, match="'rate' can't be declared"):
            step.scalar("rate", 1.0)
        wrong: Any = [True, "1", None, np.float32(1)]
        for value in wrong:
            with pytest.raises(gpu.DtypeError, match="expected an int or a float"):
                step.scalar("other", value)
        launch(ACCUMULATE, either.zeros(1, f32), either.zeros(1, f32), factor=rate)
    with pytest.raises(gpu.StateError, match="inside the capture's block"):
        step.scalar("late", 1.0)


def test_arithmetic_with_a_scalar_is_refused(either: Context) -> None:
    x = either.zeros(1, f32)
    with either.capture() as step:
        rate, number = step.scalar("rate", 0.5), step.scalar("number", 3)
        launch(AXPY, x, x, alpha=rate)
        launch(AXPY, x, x, alpha=number)
    for compute in (
        lambda: 1.0 - rate,
        lambda: rate * 2,
        lambda: -rate,
        lambda: rate / number,
        lambda: number + 1,
        lambda: 2**number,
        lambda: number % 2,
        lambda: number >> 1,
        lambda: round(rate),
        lambda: np.float32(2) * rate,
        lambda: rate - np.ones(3),
        lambda: np.sqrt(number),
    ):
        with pytest.raises(gpu.StateError, match="the same at each replay"):
            compute()
    assert 0.25 < rate < 1
    assert float(rate) == 0.5


def test_a_scalar_that_no_call_was_given_is_refused(either: Context) -> None:
    x = either.zeros(2, f32)
    with (
        pytest.raises(gpu.ArgumentError, match=r"no call of the block was given .*'a'"),
        either.capture() as step,
    ):
        elementwise.axpy(x, either.zeros(2, f32), alpha=float(step.scalar("a", 1.0)))


def test_a_scalar_of_another_capture_is_refused(either: Context) -> None:
    x, y = either.zeros(2, f32), either.zeros(2, f32)
    with either.capture() as first:
        alpha = first.scalar("alpha", 1.0)
        elementwise.axpy(x, y, alpha=alpha)
    elementwise.axpy(x, y, alpha=alpha)  # outside it is a number as any other
    with pytest.raises(gpu.StateError, match="another capture"), either.capture():
        elementwise.axpy(x, y, alpha=alpha)


def test_a_scalar_that_decides_lengths_is_refused(either: Context) -> None:
    x = either.zeros((2, 8), f32)
    with (
        pytest.raises(gpu.StateError, match="decides lengths"),
        either.capture() as step,
    ):
        layout.slice_rows(x, start=step.scalar("start", 0), count=1)


def test_a_scalar_within_a_vector_is_refused(either: Context) -> None:
    """It would be packed as the number that it is, and a replay would not change it."""
    x = either.zeros(4, f32)
    with either.capture() as step:
        rate = step.scalar("rate", 1.0)
        launch(AXPY, x, x, alpha=rate)
        with pytest.raises(gpu.StateError, match="'rate' is a part of 'scale'"):
            launch(STAMP, ctx=either, step=2, offset=0, scale=(1.0, rate, 2.0))


def test_replays_check_their_arguments(either: Context) -> None:
    total = either.zeros(1, f32)
    with either.capture() as step:
        launch(ACCUMULATE, total, either.zeros(1, f32), factor=step.scalar("a", 1.0))
        launch(AXPY, total, total, alpha=step.scalar("b", 1.0))
    before = either.counters.snapshot()
    replay: Any = step.replay
    with pytest.raises(gpu.UnknownNameError, match=r"'c'.*'a', 'b'"):
        replay(c=1)
    with pytest.raises(gpu.DtypeError, match="expected a number"):
        replay(a=2.0, b="1")
    with pytest.raises(gpu.UniformRangeError, match=r"'factor' is 1e.39"):
        replay(a=1e39)
    with pytest.raises(gpu.ArgumentError, match="0 or more"):
        replay(-1)
    for times in (1.0, True, "2"):
        with pytest.raises(gpu.DtypeError, match="expected an integer"):
            replay(times)
    assert (either.counters - before).calls == 0
    replay(np.int64(2))
    assert (either.counters - before).calls == 4


# ---- how a capture ends


def test_inside_its_block_it_cant_be_replayed(either: Context) -> None:
    with either.capture() as step, pytest.raises(gpu.StateError, match="not ended yet"):
        step.replay()
    step.replay()


def test_a_capture_that_was_closed(either: Context) -> None:
    with either.capture() as step:
        elementwise.relu(either.zeros(3, f32))
    assert repr(step) == "Capture(ready)"
    step.replay()
    step.close()
    step.close()
    with pytest.raises(gpu.StateError, match="was closed"):
        step.replay()
    assert repr(step) == "Capture(ended)"


@pytest.mark.parametrize("adapter", ["device", "reference"])
def test_a_context_that_was_closed(adapter: str) -> None:
    software = adapter == "device"
    ctx = open_software_context() if software else gpu.open(adapter="reference")
    with ctx.capture() as step:
        elementwise.relu(ctx.zeros(3, f32))
    with ctx.capture() as last:
        ctx.close()
    for each in (step, last):
        with pytest.raises(gpu.ContextError, match="is closed"):
            each.replay()


@pytest.mark.parametrize("use", ["a call", "a call that changes", "a copy", "a clear"])
def test_a_callers_buffer_that_was_destroyed(ctx: Context, use: str) -> None:
    """It is refused before anything is recorded: other calls are not lost by it."""
    usage = 0x80 | 0x4 | 0x8
    buffer = ctx.device.create_buffer(size=64, usage=usage)
    x, total = ctx.wrap(buffer, 16, f32), ctx.zeros(16, f32)
    with ctx.capture() as step:
        match use:
            case "a copy":
                total.copy_from(x)
            case "a clear":
                x.clear()
            case "a call":
                launch(ACCUMULATE, total, x, factor=1.0)
            case _:
                launch(ACCUMULATE, total, x, factor=step.scalar("factor", 1.0))
    step.replay()
    ctx.submit()
    buffer.destroy()
    other = elementwise.exp(ctx.zeros(4, f32))
    with pytest.raises(gpu.ValidationError, match="destroyed"):
        step.replay()
    np.testing.assert_array_equal(total.numpy(), np.zeros(16))
    np.testing.assert_array_equal(other.numpy(), np.ones(4))


def test_an_error_of_the_device_loses_what_replays_wrote(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    total, x = ctx.zeros(1, f32), ctx.vector([1.0], f32)
    with ctx.capture() as step:
        launch(ACCUMULATE, total, x, factor=1.0)
    losses = total.losses
    step.replay()

    def fail(*_: object) -> None:
        raise RuntimeError("no more")

    with monkeypatch.context() as patched:
        patched.setattr(internals(ctx)._recorder._arena, "upload", fail)
        with pytest.raises(gpu.ValidationError, match=r"'accumulate'.*no more"):
            ctx.submit()
    assert total.losses == losses + 1
    step.replay()
    assert total.item() == 1


def test_it_cant_be_pickled(ctx: Context) -> None:
    with ctx.capture() as step:
        pass
    with pytest.raises(gpu.DtypeError, match="pickled"):
        step.__reduce__()
