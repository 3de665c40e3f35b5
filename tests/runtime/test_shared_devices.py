"""Several contexts on one device: what is compiled there is compiled once for all."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from weakref import ref

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, f32
from kerngen_kernels import elementwise
from tests.conftest import open_software_context
from tests.runtime.kernels import AXPY, internals, launch


def compiled(ctx: Context) -> tuple[int, int, int]:
    """Run a kernel; return pipelines created, misses and hits of all calls so far."""
    x = ctx.vector([-1.0, 2.0], f32)
    np.testing.assert_array_equal(elementwise.relu(x).numpy(), [0, 2])
    cache = ctx.caches["pipelines"]
    return ctx.counters.pipelines_created, cache.misses, cache.hits


def test_contexts_on_one_device_compile_once() -> None:
    with open_software_context() as first, gpu.open(device=first.device) as second:
        assert first.device is second.device
        assert compiled(first) == (1, 1, 0)
        assert compiled(second) == (0, 0, 1)
        second.close()
        with gpu.open(device=first.device) as third:
            assert compiled(third) == (0, 0, 1)


def test_contexts_on_other_devices_compile_their_own() -> None:
    with open_software_context() as first, open_software_context() as second:
        assert compiled(first) == compiled(second) == (1, 1, 0)


def test_shaders_have_one_numbering_on_a_device() -> None:
    """A bind group is found by its shader's number."""
    with open_software_context() as first, gpu.open(device=first.device) as second:
        elementwise.relu(first.zeros(3, f32))
        launch(AXPY, second.zeros(3, f32), second.zeros(3, f32), alpha=1.0)
        elementwise.relu(second.zeros(3, f32))
        launch(AXPY, first.zeros(3, f32), first.zeros(3, f32), alpha=1.0)
        numbers = [
            {key[0] for key in internals(ctx)._bind_groups.cache._entries}
            for ctx in (first, second)
        ]
        assert len(numbers[0]) == 2
        assert numbers[0] == numbers[1]


def test_threads_with_contexts_of_their_own_compile_once() -> None:
    with open_software_context() as owner:
        barrier = Barrier(4)

        def work(_: int) -> int:
            with gpu.open(device=owner.device) as ctx:
                barrier.wait(60)
                return compiled(ctx)[0]

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(work, range(4))) == 1


def test_a_device_goes_with_its_last_user() -> None:
    with open_software_context() as owner:
        device = owner.device.adapter.request_device_sync()
    ctx = gpu.open(device=device)
    compiled(ctx)
    ctx.close()
    watched = ref(device)
    del ctx, device
    gc.collect()
    assert watched() is None


def test_the_device_of_a_context() -> None:
    ctx = open_software_context()
    buffer = ctx.device.create_buffer(size=16, usage=0x80 | 0x4)
    assert ctx.wrap(buffer, 4, f32).numpy().shape == (4,)
    ctx.close()
    with pytest.raises(gpu.ContextError, match="closed"):
        _ = ctx.device
    with (
        gpu.open(adapter="reference") as reference,
        pytest.raises(gpu.ContextError, match="the reference context has none"),
    ):
        _ = reference.device
