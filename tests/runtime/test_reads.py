"""Reading several tensors, by one submission and one wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import Context, Tensor, f16, f32, u32
from kerngen.runtime.device.backend import grouped
from kerngen_kernels import elementwise
from tests.runtime.kernels import internals

Read = Callable[[Context, Sequence[Tensor[Any, Any]]], tuple[NDArray[Any], ...]]


def awaited(
    ctx: Context, tensors: Sequence[Tensor[Any, Any]]
) -> tuple[NDArray[Any], ...]:
    return asyncio.run(ctx.read_async(*tensors))


READS: dict[str, Read] = {
    "read": lambda ctx, tensors: ctx.read(*tensors),
    "read_async": awaited,
}


@pytest.mark.parametrize("how", READS)
def test_several_tensors(either: Context, how: str) -> None:
    """Views that begin within a word among them, and tensors without elements."""
    x = either.tensor(np.arange(7, dtype=np.float16), f16)
    y = either.matrix(np.arange(12).reshape(3, 4), u32)
    none = either.zeros((0, 3), f32)
    z = elementwise.relu(either.vector([-1.0, 2.0], f32))
    arrays = READS[how](either, [x[1:4], y, none, y[1:2], z, x])
    expected = [
        np.array([1, 2, 3], np.float16),
        np.arange(12, dtype=np.uint32).reshape(3, 4),
        np.zeros((0, 3), np.float32),
        np.array([[4, 5, 6, 7]], np.uint32),
        np.array([0, 2], np.float32),
        np.arange(7, dtype=np.float16),
    ]
    for array, right in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, right, strict=True)
        array[...] = 9  # it is the caller's own
    np.testing.assert_array_equal(z.numpy(), [0, 2])
    assert READS[how](either, []) == ()


@pytest.mark.parametrize("how", READS)
def test_one_submission_and_one_buffer(ctx: Context, how: str) -> None:
    tensors = [ctx.zeros(300, f32) for _ in range(5)]
    before, readbacks = ctx.counters.snapshot(), internals(ctx)._memory.readbacks
    acquired = readbacks.hits + readbacks.misses
    READS[how](ctx, tensors)
    done = ctx.counters - before
    assert (done.submits, done.readbacks, done.copies) == (1, 5, 5)
    assert readbacks.hits + readbacks.misses == acquired + 1


def test_what_exceeds_a_buffer_is_read_in_turns(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = [ctx.vector(np.full(100, number), f32) for number in range(5)]

    def groups(ranges: Sequence[Any], _: int) -> Iterator[list[Any]]:
        return grouped(ranges, 1000)

    monkeypatch.setattr("kerngen.runtime.device.backend.grouped", groups)
    ctx.submit()
    before = ctx.counters.snapshot()
    arrays = ctx.read(*tensors)
    assert [array[99] for array in arrays] == [0, 1, 2, 3, 4]
    assert (ctx.counters - before).submits == 3


def test_what_cant_be_read(either: Context) -> None:
    x, read = either.zeros(3, f32), READS["read"]
    wrong: Any = [x, np.zeros(3)]
    with pytest.raises(gpu.DtypeError, match=r"expected tensors, got a numpy\.ndarray"):
        read(either, wrong)
    with (
        gpu.open(adapter="reference") as other,
        pytest.raises(gpu.ContextError, match="expected"),
    ):
        other.read(x)


def test_the_event_loop_sleeps_while_a_read_is_awaited(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = ctx.vector(np.zeros(1 << 20), f32)
    turns: list[object] = []

    async def read() -> NDArray[Any]:
        y = elementwise.exp(x)
        for _ in range(7):
            elementwise.exp(x, out=y)
        selector: Any = vars(asyncio.get_running_loop())["_selector"]
        select = selector.select

        def count(timeout: float | None = None) -> object:
            turns.append(timeout)
            return select(timeout)

        monkeypatch.setattr(selector, "select", count)
        return await y[:3].read_async()

    np.testing.assert_array_equal(asyncio.run(read()), [1, 1, 1])
    assert len(turns) < 20


class Unfinished:
    """The library, whose polls find nothing done for some time."""

    def __init__(self, library: Any, seconds: float) -> None:
        self._library = library
        self._end = perf_counter() + seconds
        self.polls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def poll(self, device: object) -> None:
        """Find nothing, until the time is over."""
        self.polls += 1
        if perf_counter() > self._end:
            self._library.poll(device)


def test_a_reader_of_long_work_pauses_between_polls(ctx: Context) -> None:
    y = elementwise.exp(ctx.vector(np.zeros(1 << 10), f32))
    reading = internals(ctx)._begin_reads([y[:3].place])
    slow = Unfinished(reading.mapping._library, 0.03)
    mapping = reading.mapping
    mapping._library = slow
    mapping._polling = replace(mapping._polling, seconds=0.0)  # it pauses at once
    reading.mapping.wait()
    (data,) = internals(ctx)._end_read(reading)
    assert slow.polls < 200
    np.testing.assert_array_equal(data.view(np.float32), [1, 1, 1])


def test_a_reader_does_not_wait_for_what_was_submitted_later(ctx: Context) -> None:
    x = ctx.vector(np.zeros(1 << 22), f32)
    y, z = elementwise.exp(x), elementwise.exp(x)
    ctx.read(y[:3], z[:3])
    start = perf_counter()
    for _ in range(3):
        elementwise.exp(x, out=y)
    early = y[:3].begin_read()
    for _ in range(9):
        elementwise.exp(x, out=z)
    late = z[:3].begin_read()
    early.numpy()
    first = perf_counter() - start
    late.numpy()
    assert first < 0.8 * (perf_counter() - start)


def test_reads_into_memory_of_the_callers(either: Context) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    tensor = either.tensor(rows, f32)
    out = np.full((4, 3), -1, np.float32)
    assert tensor.numpy(out=out) is out
    np.testing.assert_array_equal(out, rows)
    tensor[1:3].numpy(out=out[:2])
    np.testing.assert_array_equal(out[:2], rows[1:3])
    np.testing.assert_array_equal(out[2:], rows[2:])
    assert either.zeros(0, f32).numpy(out=np.empty(0, np.float32)).size == 0
    halves = either.tensor(rows[0], f16)[1:]  # half a word from its start
    assert halves.numpy(out=np.empty(2, np.float16)).tolist() == [1, 2]
    vectors = either.tensor(rows, gpu.vec3f)  # 16 bytes each on the device
    np.testing.assert_array_equal(vectors.numpy(out=out), rows)


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        ([0.0] * 4, gpu.DtypeError, "out is a list"),
        (np.zeros(4), gpu.DtypeError, "dtype float64; expected float32"),
        (np.zeros(5, np.float32), gpu.ShapeError, r"shape \(5,\); expected \(4,\)"),
        (np.zeros(8, np.float32)[::2], gpu.ArgumentError, "not contiguous"),
    ],
)
def test_memory_that_does_not_fit(
    ctx: Context, out: Any, error: type[gpu.Error], text: str
) -> None:
    with pytest.raises(error, match=text):
        ctx.zeros(4, f32).numpy(out=out)


def test_a_late_read_returns_what_was_there(either: Context) -> None:
    """Also in views within a word, and with work recorded in between."""
    x = either.tensor(np.arange(7, dtype=np.float16), f16)
    readings = [x.begin_read(), x[1:4].begin_read(), either.zeros(0, f32).begin_read()]
    x.copy_from(np.full(7, 9, np.float16))
    after = x.begin_read()
    expected = (np.arange(7), np.array([1, 2, 3]), np.zeros(0))
    for reading, right in zip(readings, expected, strict=True):
        np.testing.assert_array_equal(reading.numpy(), right)
    np.testing.assert_array_equal(after.numpy(), np.full(7, 9))
    with pytest.raises(gpu.StateError, match="returned already"):
        after.numpy()


def test_late_reads_reuse_their_buffers_and_wait_for_their_own_work(
    ctx: Context,
) -> None:
    x = ctx.zeros(4, u32)
    x.begin_read().numpy()
    before = ctx.counters.snapshot()
    for number in range(5):
        x.copy_from([number] * 4)
        reading = x.begin_read()
        elementwise.relu(ctx.zeros(4, f32))
        assert reading.numpy()[0] == number
    assert (ctx.counters - before).buffers_created <= 2


def test_a_late_read_that_nobody_waits_for(ctx: Context) -> None:
    with gpu.open(ctx.device) as own:
        x = own.vector([1, 2], u32)
        kept = x.begin_read()
        x.begin_read()
        x.copy_from([3, 4])
        np.testing.assert_array_equal(x.numpy(), [3, 4])
    np.testing.assert_array_equal(kept.numpy(), [1, 2])
