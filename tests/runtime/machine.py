"""A machine that does the same to tensors and to arrays, and compares: NumPy is the model.

Elements are small whole numbers, which every strategy adds up exactly.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from time import monotonic, sleep
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import kerngen.runtime as gpu
from kerngen.batch import Batch
from kerngen.runtime import Context, Tensor, f16, f32
from kerngen_kernels import elementwise, matmul, nn, reduction
from tests.runtime.kernels import ACCUMULATE, AXPY, CENTRE, SWAP, internals, launch
from tests.runtime.layouts import LAYOUTS, Array, whole

LONGEST = 96
LARGEST = 2**15
"""Products of such numbers, and sums of those, are exact in f32."""

HELD = ("Buffer", "BindGroup", "QuerySet", "CommandBuffer")
"""Objects that none may be left of, once contexts are closed and tensors dropped."""

PATIENCE = 5
"""Seconds; a test that passes takes few."""

NUMBERS = st.integers(0, 40)
two = rule(number=NUMBERS, value=NUMBERS)
one = rule(number=NUMBERS)


@dataclass(eq=False)
class Pair:
    """A tensor and what it must hold; views of one share their memory with its views."""

    tensor: Tensor[Any, Any]
    array: Array

    def check(self) -> None:
        """Compare."""
        np.testing.assert_array_equal(self.tensor.numpy(), self.array)


def live_objects() -> dict[str, int]:
    """How many objects wgpu-native holds for Python, by kind."""
    gc.collect()
    wgpu: Any = import_module("wgpu")
    counts = wgpu.diagnostics.wgpu_native_counts.get_dict()
    return {kind: counts[kind]["count"] for kind in HELD}


class Machine(RuleBasedStateMachine):
    """Two contexts on one device, tensors of both, and everything that may be called."""

    device: ClassVar[Any]

    def __init__(self) -> None:
        """Start with nothing."""
        super().__init__()
        self.before = live_objects()
        self.contexts = [gpu.open(self.device), gpu.open(self.device)]
        self.pairs: list[Pair] = []
        self.batches = ExitStack()
        self.open_batches = 0

    # ---- choosing

    def open(self, number: int) -> Context:
        """Open a context; some run shaders without checks."""
        return gpu.open(self.device, unchecked=number % 3 == 0)

    def context(self, number: int) -> Context:
        return self.contexts[number % 2]

    def pick(self, number: int, like: Pair | None = None) -> Pair:
        """An f32 vector, of the context of another."""
        ctx = self.context(number) if like is None else like.tensor.ctx
        fitting = [p for p in self.pairs if p.tensor.ctx is ctx and is_vector(p)]
        if not fitting:
            return self.add(ctx, whole(number, LONGEST))
        return fitting[number % len(fitting)]

    def add(self, ctx: Context, array: Array) -> Pair:
        return self.keep(ctx.tensor(array), array.copy())

    def keep(self, tensor: Tensor[Any, Any], array: Array) -> Pair:
        self.pairs.append(Pair(tensor, np.asarray(array)))
        self.shorten(self.pairs[-1])
        return self.pairs[-1]

    def shorten(self, pair: Pair) -> None:
        """Keep the numbers small."""
        if np.abs(pair.array).max(initial=0) > LARGEST:
            pair.tensor.copy_from(np.ones_like(pair.array))
            pair.array[...] = 1

    def both(self, number: int, value: int) -> tuple[Pair, Pair]:
        """Two vectors of one context and of one length."""
        x = self.pick(number)
        y = self.pick(value, x)
        n = min(len(x.array), len(y.array))
        return (
            Pair(x.tensor[:n], x.array[:n]),
            Pair(y.tensor[:n], y.array[:n]),
        )

    # ---- memory

    @two
    def upload(self, number: int, value: int) -> None:
        self.add(self.context(number), whole(value, value * 2))

    @two
    def upload_halves(self, number: int, value: int) -> None:
        self.add(self.context(number), whole(value, value + 3).astype(np.float16))

    @rule(number=NUMBERS, value=NUMBERS, layout=st.sampled_from(sorted(LAYOUTS)))
    def upload_laid_out(self, number: int, value: int, layout: str) -> None:
        """Arrays that lie in NumPy's memory in other ways, or somewhere else."""
        array = LAYOUTS[layout](whole(value, 2 * (value + 1)))
        plain = np.array(array, np.float32)
        self.keep(self.context(number).tensor(array), plain)

    @two
    def zeros(self, number: int, value: int) -> None:
        self.keep(self.context(number).zeros(value, f32), np.zeros(value, np.float32))

    @precondition(lambda self: self.pairs)
    @two
    def overwrite(self, number: int, value: int) -> None:
        pair = self.pairs[number % len(self.pairs)]
        fresh = np.full(pair.array.shape, value, pair.array.dtype)
        pair.tensor.copy_from(fresh)
        pair.array[...] = fresh

    @precondition(lambda self: self.pairs)
    @one
    def clear(self, number: int) -> None:
        pair = self.pairs[number % len(self.pairs)]
        pair.tensor.clear()
        pair.array[...] = 0

    @precondition(lambda self: self.pairs)
    @two
    def view(self, number: int, value: int) -> None:
        """Rows from anywhere: within a word, too, and off the adapter's alignment."""
        pair = self.pairs[number % len(self.pairs)]
        if pair.array.ndim:
            start = value % (len(pair.array) + 1)
            stop = start + (len(pair.array) - start) // 2
            self.keep(pair.tensor[start:stop], pair.array[start:stop])

    @one
    def reshape(self, number: int) -> None:
        pair = self.pick(number)
        n = len(pair.array) // 2 * 2
        shape = (2, n // 2)
        self.keep(pair.tensor[:n].reshape(shape), pair.array[:n].reshape(shape))

    @precondition(lambda self: self.pairs)
    @two
    def copy(self, number: int, value: int) -> None:
        target = self.pairs[number % len(self.pairs)]
        source = self.pairs[value % len(self.pairs)]
        alike = target.array.dtype == source.array.dtype
        if not (target.array.ndim and source.array.ndim and alike):
            return
        if target.array.shape[1:] != source.array.shape[1:]:
            return
        n = min(len(target.array), len(source.array))
        if target.tensor.ctx is not source.tensor.ctx:
            with pytest.raises(gpu.ContextError):
                target.tensor[:n].copy_from(source.tensor[:n])
            return
        target.tensor[:n].copy_from(source.tensor[:n])
        target.array[:n] = source.array[:n].copy()

    @precondition(lambda self: self.pairs)
    @one
    def drop(self, number: int) -> None:
        del self.pairs[number % len(self.pairs)]

    @rule()
    def collect_garbage(self) -> None:
        gc.collect()

    @one
    def trim(self, number: int) -> None:
        self.context(number).trim()

    @rule(number=NUMBERS, free=st.sampled_from([0, 1000, 1 << 30]))
    def cap(self, number: int, free: int) -> None:
        self.context(number).limits.pooled_bytes = free

    # ---- reads

    @precondition(lambda self: self.pairs)
    @one
    def read(self, number: int) -> None:
        self.pairs[number % len(self.pairs)].check()

    @precondition(lambda self: self.pairs)
    @two
    def read_together(self, number: int, value: int) -> None:
        """Several reads under way at once, on the event loop."""
        chosen = (self.pairs[number % len(self.pairs) :] + self.pairs)[: value % 4]

        async def several() -> list[Array]:
            return list(await asyncio.gather(*(p.tensor.read_async() for p in chosen)))

        for pair, got in zip(chosen, asyncio.run(several()), strict=True):
            np.testing.assert_array_equal(got, pair.array)

    @precondition(lambda self: self.pairs)
    @one
    def cancel_a_read(self, number: int) -> None:
        """The next comes after it, and the event loop stays until then."""
        pair = self.pairs[number % len(self.pairs)]

        async def cancel() -> None:
            reading = asyncio.create_task(pair.tensor.read_async())
            await asyncio.sleep(0)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            np.testing.assert_array_equal(await pair.tensor.read_async(), pair.array)

        asyncio.run(cancel())

    # ---- kernels

    @one
    def forget_a_kernel(self, number: int) -> None:
        """As a reload does."""
        internals(self.context(number)).forget_kernels(frozenset({AXPY, ACCUMULATE}))

    @two
    def queue(self, number: int, value: int) -> None:
        """A batch of its own over tensors of ours, which it takes as they then are."""
        x, y = self.both(number, value)
        batch = Batch(x.tensor.ctx)
        total = batch.add(batch.import_buffer(x.tensor), batch.upload(y.array))
        batch.execute()
        np.testing.assert_array_equal(batch.read(total), x.array + y.array)

    @two
    def axpy(self, number: int, value: int) -> None:
        x, y = self.both(number, value)
        (z,) = launch(AXPY, x.tensor, y.tensor, alpha=-1.0)
        self.keep(z, y.array - x.array)

    @rule(number=NUMBERS, value=NUMBERS, into=NUMBERS)
    def add_into(self, number: int, value: int, into: int) -> None:
        """Into a tensor of the caller's; disjoint from the inputs, or refused."""
        x, y = self.both(number, value)
        out = self.pick(into, x)
        n = min(len(x.array), len(out.array))
        arguments = x.tensor[:n], y.tensor[:n], out.tensor[:n]
        overlaps = n and any(
            np.shares_memory(each.array[:n], out.array[:n]) for each in (x, y)
        )
        if overlaps:
            with pytest.raises(gpu.AliasError):
                elementwise.add(*arguments[:2], out=arguments[2])
            return
        elementwise.add(*arguments[:2], out=arguments[2])
        out.array[:n] = x.array[:n] + y.array[:n]
        self.shorten(out)

    @two
    def accumulate(self, number: int, value: int) -> None:
        total, x = self.both(number, value)
        if len(x.array) and np.shares_memory(total.array, x.array):
            with pytest.raises(gpu.AliasError):
                launch(ACCUMULATE, total.tensor, x.tensor, factor=2.0)
            return
        launch(ACCUMULATE, total.tensor, x.tensor, factor=2.0)
        total.array += 2 * x.array
        self.shorten(total)

    @two
    def swap(self, number: int, value: int) -> None:
        a, b = self.both(number, value)
        if not np.shares_memory(a.array, b.array):
            launch(SWAP, a.tensor, b.tensor)
            a.array[...], b.array[...] = b.array.copy(), a.array.copy()

    @two
    def centre(self, number: int, value: int) -> None:
        """Two stages with a temporary, on numbers whose mean is exact."""
        x = self.context(number).vector([value, value + 2] * 8, f32)
        (y,) = launch(CENTRE, x)
        self.keep(y, np.array([-1, 1] * 8, np.float32))

    @two
    def product(self, number: int, value: int) -> None:
        """Tiles, or the products of one row: of a vector and itself."""
        x = self.pick(number)
        rows = value % 3 + 1
        k = len(x.array) // rows
        a, left = x.tensor[: rows * k].reshape((rows, k)), x.array[: rows * k]
        b, right = x.tensor[:k].reshape((k, 1)), x.array[:k].reshape(k, 1)
        if np.abs(left).max(initial=0) < 100:
            self.keep(matmul.matmul_nn(a, b), left.reshape(rows, k) @ right)

    @one
    def sum(self, number: int) -> None:
        x = self.pick(number)
        self.keep(reduction.sum(x.tensor), x.array.sum(dtype=np.float32))

    @two
    def column_sum(self, number: int, value: int) -> None:
        x = self.pick(number)
        rows = value % 4 + 1
        n = len(x.array) // rows * rows
        shape = (rows, n // rows)
        got = nn.column_sum(x.tensor[:n].reshape(shape))
        self.keep(got, x.array[:n].reshape(shape).sum(0))

    # ---- submission

    @rule(number=NUMBERS, count=st.sampled_from([1, 3, 4096]))
    def submit_after(self, number: int, count: int) -> None:
        self.context(number).limits.dispatches = count

    @one
    def submit(self, number: int) -> None:
        self.context(number).submit()

    @one
    def batch(self, number: int) -> None:
        self.batches.enter_context(self.context(number).batch())
        self.open_batches += 1

    @rule()
    def end_batches(self) -> None:
        self.batches.close()
        self.open_batches = 0

    @two
    def batch_with_a_fault(self, number: int, value: int) -> None:
        """What was called before a user's exception counts."""

        def fail() -> None:
            with self.context(number).batch():
                self.accumulate(number, value)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

    @two
    def timed(self, number: int, value: int) -> None:
        x = self.pick(number)
        other = x.tensor.ctx.vector(whole(value, len(x.array)), f32)
        # A view that the adapter can't bind where it starts needs a copy.
        if x.tensor.direct:
            with x.tensor.ctx.timed() as span:
                launch(AXPY, x.tensor, other, alpha=1.0)
            assert span.seconds >= 0

    @two
    def profile(self, number: int, value: int) -> None:
        x = self.pick(number)
        with x.tensor.ctx.profile() as profile:
            y = elementwise.relu(x.tensor)
            if value % 2:
                x.check()
        assert len(profile.events) == bool(len(x.array))
        self.keep(y, np.maximum(x.array, 0))

    # ---- threads

    @precondition(lambda self: not self.open_batches)
    @two
    def in_threads(self, number: int, value: int) -> None:
        """Calls, reads and drops by several threads, each of tensors of its own."""
        dropped = [self.pairs.pop().tensor for _ in self.pairs[: value % 3]]

        def work(seed: int) -> Pair:
            with suppress(IndexError):
                del dropped[-1]
            x = self.context(seed).vector(whole(seed, LONGEST), f32)
            y = elementwise.scale(x, alpha=2.0)
            elementwise.add(x, y).numpy()
            return Pair(elementwise.add(x, y), 3 * whole(seed, LONGEST))

        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(work, range(number, number + 1 + value % 6)))
        for pair in made:
            self.keep(pair.tensor, pair.array)

    # ---- faults

    @rule(number=NUMBERS, fault=st.sampled_from(range(8)))
    def wrong_call(self, number: int, fault: int) -> None:
        """A call that is refused changes nothing."""
        x = self.pick(number)
        other = self.context(number + 1).zeros(len(x.array), f32)
        longer = x.tensor.ctx.zeros(len(x.array) + 1, f32)
        half: Any = x.tensor.ctx.zeros(len(x.array), f16)
        nothing: Any = None
        calls: tuple[tuple[type[gpu.Error], Callable[[], object]], ...] = (
            (gpu.ContextError, lambda: elementwise.add(x.tensor, other)),
            (gpu.ContextError, lambda: elementwise.add(x.tensor, x.tensor, out=other)),
            (gpu.ShapeError, lambda: elementwise.add(x.tensor, longer)),
            (gpu.ShapeError, lambda: x.tensor.copy_from(longer)),
            (gpu.DtypeError, lambda: elementwise.add(x.tensor, half)),
            (gpu.DtypeError, lambda: elementwise.relu(nothing)),
            (gpu.UniformRangeError, lambda: elementwise.scale(x.tensor, alpha=1e39)),
            (gpu.ShapeError, lambda: x.tensor.rows(0, len(x.array) + 1)),
        )
        expected, call = calls[fault]
        with pytest.raises(expected):
            call()

    @one
    def no_memory(self, number: int) -> None:
        """The device has none left, once and again after what is free was freed."""
        ctx = self.context(number)
        memory = internals(ctx)._memory
        device = memory._device
        wgpu: Any = import_module("wgpu")

        class Full:
            def create_buffer(self, **_: object) -> None:
                raise wgpu.GPUOutOfMemoryError("Not enough memory left.")

        ctx.trim()
        memory._device = Full()
        try:
            with pytest.raises(gpu.OutOfMemoryError):
                ctx.zeros(LONGEST * 1000, f32)
        finally:
            memory._device = device

    @precondition(lambda self: not self.open_batches)
    @one
    def close_and_open(self, number: int) -> None:
        """All tensors of a context end with it, and say so."""
        ctx = self.context(number)
        theirs = [pair for pair in self.pairs if pair.tensor.ctx is ctx]
        ctx.close()
        for pair in theirs:
            if pair.array.size:
                with pytest.raises(gpu.ContextError, match="closed"):
                    pair.tensor.numpy()
        self.pairs = [pair for pair in self.pairs if pair.tensor.ctx is not ctx]
        self.contexts[number % 2] = self.open(number)

    # ---- what always holds

    @invariant()
    def pools_hold_no_more_than_they_may(self) -> None:
        for ctx in self.contexts:
            for cache in ctx.caches.values():
                assert getattr(cache, "free_bytes", 0) <= 1 << 30

    def teardown(self) -> None:
        """Compare everything; then let go of it, and see that nothing is left."""
        self.batches.close()
        self.check_all()
        self.pairs.clear()
        while self.contexts:
            self.contexts.pop().close()
        deadline = monotonic() + PATIENCE
        while (left := live_objects()) != self.before and monotonic() < deadline:
            sleep(0.05)  # reads that were cancelled are still under way
        assert left == self.before, f"{left} are left of {self.before}"

    def check_all(self) -> None:
        for pair in self.pairs:
            pair.check()


def is_vector(pair: Pair) -> bool:
    return pair.array.ndim == 1 and pair.array.dtype == np.float32
