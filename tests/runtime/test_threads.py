"""Several threads on one context: right results, whoever closes, collects or fails."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, f32
from kerngen_kernels import elementwise, matmul
from tests.conftest import open_software_context

THREADS = 6
TURNS = 12


def together(work: Callable[[int], object]) -> list[object]:
    """Run it in several threads that begin at once; raise what any of them raises."""
    ready = threading.Barrier(THREADS)

    def begin(number: int) -> object:
        ready.wait(60)  # one that did not begin breaks it for all
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(begin, range(THREADS)))


def test_readers_and_writers_get_what_they_asked_for(ctx: Context) -> None:
    shared = ctx.matrix(np.eye(20), f32)

    def work(number: int) -> None:
        own = np.full((20, 20), number, np.float32)
        x = ctx.matrix(own, f32)
        for turn in range(TURNS):
            y = matmul.matmul_nn(x, shared)
            x.copy_from(own + turn)
            np.testing.assert_array_equal(y.numpy(), own + max(turn - 1, 0))
            np.testing.assert_array_equal(x.numpy(), own + turn)

    together(work)


def test_steps_of_several_threads_are_each_whole(ctx: Context) -> None:
    """Calls that change one tensor take turns; none is lost, none is half done."""
    total = ctx.zeros(1000, f32)

    def work(_: int) -> None:
        for _ in range(TURNS):
            add_one(ctx, total)

    together(work)
    np.testing.assert_array_equal(total.numpy(), THREADS * TURNS)


def add_one(ctx: Context, total: gpu.Vector[f32]) -> None:
    with ctx.batch():
        more = elementwise.add(total, ctx.vector(np.ones(1000), f32))
        total.copy_from(more)


def test_others_wait_for_the_end_of_a_batch(ctx: Context) -> None:
    x = ctx.vector(np.zeros(10), f32)
    done = threading.Event()

    def read() -> None:
        x.numpy()
        done.set()

    reader = threading.Thread(target=read, daemon=True)
    with ctx.batch():
        x.copy_from(np.ones(10))
        reader.start()
        assert not done.wait(0.05)
    assert done.wait(60)


def test_a_context_may_be_closed_while_others_use_it() -> None:
    """They end by ContextError, whatever they were doing, and none of them hangs."""
    for seconds in (0.0, 0.01, 0.05):
        ctx = open_software_context()
        x = ctx.matrix(np.eye(64), f32)
        end = threading.Timer(seconds, ctx.close)

        def work(number: int, x: gpu.Matrix[f32] = x) -> None:
            for turn in range(100_000):
                y = matmul.matmul_nn(x, x)
                if turn % 3 == number % 3:
                    np.testing.assert_array_equal(y.numpy(), np.eye(64))

        end.start()
        with pytest.raises(gpu.ContextError, match="closed"):
            together(work)
        end.join()


def test_tensors_may_be_dropped_and_collected_by_any_thread(ctx: Context) -> None:
    def work(number: int) -> None:
        for turn in range(TURNS):
            tensors = [ctx.zeros(100 + number, f32) for _ in range(5)]
            cycle: list[object] = [tensors]
            cycle.append(cycle)
            del tensors, cycle
            if turn == number:
                gc.collect()
            x = ctx.vector(np.arange(100), f32)
            np.testing.assert_array_equal(
                elementwise.relu(x).numpy(), np.arange(100, dtype=np.float32)
            )

    together(work)


def test_an_error_in_one_thread_is_no_other_threads() -> None:
    with open_software_context() as ctx:
        x = ctx.vector(np.ones(8), f32)

        def work(number: int) -> None:
            for _ in range(TURNS):
                if number % 2:
                    with pytest.raises(gpu.ShapeError):
                        elementwise.add(x, ctx.zeros(9, f32))
                else:
                    y = elementwise.add(x, x)
                    np.testing.assert_array_equal(y.numpy(), np.full(8, 2.0))

        together(work)
