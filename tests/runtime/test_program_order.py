"""Program order: whatever is interleaved, the result is that of running at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.runtime import Context, Vector, f32
from tests.runtime.kernels import ACCUMULATE, AXPY, CENTRE, SWAP, launch

ROWS = 96
Slice = tuple[int, int]


@dataclass
class Pair:
    """A tensor and what it must hold."""

    tensor: Vector[f32]
    array: NDArray[np.float32]


@dataclass
class Machine:
    """Does the same to tensors and to arrays, a small integer in each element."""

    ctx: Context
    pairs: list[Pair] = field(default_factory=list[Pair])
    stack: ExitStack = field(default_factory=ExitStack)

    def pick(self, number: int) -> Pair:
        if not self.pairs:
            self.upload(number, 1)
        return self.pairs[number % len(self.pairs)]

    def upload(self, _number: int, value: int) -> None:
        array = (np.arange(ROWS) % 5 + value).astype(np.float32)
        self.pairs.append(Pair(self.ctx.vector(array, f32), array))

    def overwrite(self, number: int, value: int) -> None:
        pair = self.pick(number)
        fresh = np.full(pair.array.shape, value, np.float32)
        pair.tensor.copy_from(fresh)
        pair.array[...] = fresh

    def zeros(self, _number: int, _value: int) -> None:
        self.pairs.append(Pair(self.ctx.zeros(ROWS, f32), np.zeros(ROWS, np.float32)))

    def view(self, number: int, value: int) -> None:
        """Take rows; half of the starts don't suit the adapter's alignment."""
        pair = self.pick(number)
        start = value * 4 % max(len(pair.array), 1)
        stop = start + (len(pair.array) - start) // 2
        self.pairs.append(Pair(pair.tensor[start:stop], pair.array[start:stop]))

    def drop(self, number: int, _value: int) -> None:
        self.pairs.remove(self.pick(number))

    def read(self, number: int, _value: int) -> None:
        pair = self.pick(number)
        np.testing.assert_array_equal(pair.tensor.numpy(), pair.array)

    def copy(self, number: int, value: int) -> None:
        target, source = self.pick(number), self.pick(value)
        n = min(len(target.array), len(source.array))
        target.tensor[:n].copy_from(source.tensor[:n])
        target.array[:n] = source.array[:n].copy()

    def axpy(self, number: int, value: int) -> None:
        x, y = self.pick(number), self.pick(value)
        n = min(len(x.array), len(y.array))
        (z,) = launch(AXPY, x.tensor[:n], y.tensor[:n], alpha=-1.0)
        self.pairs.append(Pair(z, y.array[:n] - x.array[:n]))

    def accumulate(self, number: int, value: int) -> None:
        total, x = self.pick(number), self.pick(value)
        n = min(len(total.array), len(x.array))
        if np.shares_memory(total.array[:n], x.array[:n]):
            return
        launch(ACCUMULATE, total.tensor[:n], x.tensor[:n], factor=2.0)
        total.array[:n] += 2 * x.array[:n]
        # Keep the numbers small, so that f32 holds them exactly.
        if n and np.abs(total.array[:n]).max() > 1e5:
            self.overwrite(number, 1)

    def swap(self, number: int, value: int) -> None:
        a, b = self.pick(number), self.pick(value)
        n = min(len(a.array), len(b.array))
        if np.shares_memory(a.array[:n], b.array[:n]):
            return
        launch(SWAP, a.tensor[:n], b.tensor[:n])
        a.array[:n], b.array[:n] = b.array[:n].copy(), a.array[:n].copy()

    def centre(self, _number: int, value: int) -> None:
        """Two stages with a temporary, on numbers whose mean is exact."""
        x = self.ctx.vector(np.array([value, value + 2] * 8), f32)
        (y,) = launch(CENTRE, x)
        self.pairs.append(Pair(y, np.array([-1, 1] * 8, np.float32)))

    def submit(self, _number: int, _value: int) -> None:
        self.ctx.submit()

    def batch(self, _number: int, _value: int) -> None:
        self.stack.enter_context(self.ctx.batch())

    def unbatch(self, _number: int, _value: int) -> None:
        self.stack.close()

    def check(self) -> None:
        self.stack.close()
        for pair in self.pairs:
            np.testing.assert_array_equal(pair.tensor.numpy(), pair.array)


ACTIONS = (
    "upload overwrite zeros view drop read copy axpy accumulate swap centre submit "
    "batch unbatch"
).split()

steps = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 20), st.integers(0, 20)),
    max_size=40,
)


@contextmanager
def few_dispatches(ctx: Context, count: int) -> Generator[None, None, None]:
    """Submit after every few dispatches, so that submissions fall anywhere."""
    ctx.limits.dispatches, usual = count, ctx.limits.dispatches
    try:
        yield
    finally:
        ctx.limits.dispatches = usual


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(program=steps, dispatches=st.sampled_from([1, 3, 4096]))
def test_interleavings_agree_with_numpy(
    ctx: Context, program: list[tuple[str, int, int]], dispatches: int
) -> None:
    with few_dispatches(ctx, dispatches):
        machine = Machine(ctx)
        for action, number, value in program:
            run: Any = getattr(machine, action)
            run(number, value)
        machine.check()


def test_an_upload_waits_for_recorded_readers(ctx: Context) -> None:
    x, y = ctx.vector(np.ones(64), f32), ctx.zeros(64, f32)
    launch(ACCUMULATE, y, x, factor=1.0)
    x.copy_from(np.full(64, 100.0))
    np.testing.assert_array_equal(y.numpy(), np.ones(64, np.float32))
    np.testing.assert_array_equal(x.numpy(), np.full(64, 100, np.float32))


def test_a_pooled_buffer_filled_anew_waits_for_recorded_readers(ctx: Context) -> None:
    y = ctx.zeros(64, f32)
    before = ctx.counters.snapshot()
    kept: list[Vector[f32]] = []
    for value in range(20):
        x = ctx.vector(np.full(64, value), f32)
        kept += launch(AXPY, x, y, alpha=1.0)
        del x
    reused = (ctx.counters - before).copies
    assert reused > 0, "no buffer came back while it was in use: the test tests nothing"
    for value, z in enumerate(kept):
        np.testing.assert_array_equal(z.numpy(), np.full(64, value, np.float32))
