"""Opening contexts: choices, the caller's device, the reference, the end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, ContextError, NoAdapter, f32, u32
from tests.conftest import open_software_context
from tests.runtime.kernels import (
    ACCUMULATE,
    AXPY,
    CENTRE,
    COUNT,
    SWAP,
    internals,
    launch,
)

from .listed import adapters

# ---- choices


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNGEN_ADAPTER", "Reference")
    with warnings.catch_warnings(), gpu.open() as ctx:
        assert ctx.kind == "reference"
    monkeypatch.setenv("KERNGEN_ADAPTER", "software")
    with gpu.open() as ctx:
        assert ctx.kind == "software"
        assert repr(ctx) == f"Context(software: {ctx.adapter_name})"
    monkeypatch.setenv("KERNGEN_ADAPTER", "cuda")
    with pytest.raises(NoAdapter, match="'cuda' names no adapter; expected one of gpu"):
        gpu.open()


def test_without_adapters_numpy_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNGEN_ADAPTER", raising=False)
    adapters(monkeypatch)
    with pytest.warns(
        gpu.ReferenceFallbackWarning, match=r"kerngen doctor.*mesa-vulkan"
    ):
        ctx = gpu.open()
    assert ctx.kind == "reference"
    with pytest.raises(
        NoAdapter, match=r"No software adapter was found.*kerngen doctor"
    ):
        gpu.open(adapter="software")


def test_without_a_gpu_the_software_adapter_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KERNGEN_ADAPTER", raising=False)
    adapters(monkeypatch, "CPU")
    with gpu.open() as ctx:
        assert ctx.kind == "software"
    with pytest.raises(NoAdapter, match="No gpu adapter was found: wgpu lists"):
        gpu.open(adapter="gpu")


def test_limits_beyond_the_adapter() -> None:
    with pytest.raises(gpu.Error, match="can't open a device"):
        gpu.open(adapter="software", limits={"max-compute-workgroup-size-x": 1 << 30})


def test_importing_the_runtime_is_cheap() -> None:
    code = (
        "import sys, kerngen.runtime;"
        "print([m for m in sys.modules if m.split('.')[0] in ('wgpu', 'lark', 'black')"
        " or m.startswith('kerngen.') and m.split('.')[1] not in ('plan', 'runtime')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_check_abi() -> None:
    gpu.check_abi("some.module", gpu.ABI)
    with pytest.raises(gpu.AbiError, match=r"'some.module' .* newer .* ABI 99"):
        gpu.check_abi("some.module", 99)
    with pytest.raises(ImportError, match="older"):
        gpu.check_abi("some.module", 0)


# ---- devices


def test_the_callers_device_survives_its_context() -> None:
    wgpu: Any = import_module("wgpu")
    found = wgpu.gpu.enumerate_adapters_sync()
    adapter, *_ = [a for a in found if a.info["adapter_type"] == "CPU"]
    device = adapter.request_device_sync(required_limits=dict(gpu.WEBGPU_LIMITS))
    with gpu.open(device) as ctx:
        assert ctx.kind == "software"
        x = ctx.vector(np.arange(70_000), u32)
        launch(COUNT, x)
        np.testing.assert_array_equal(x.numpy(), 2 * np.arange(70_000))
    buffer = device.create_buffer_with_data(data=b"1234", usage=4)
    assert bytes(device.queue.read_buffer(buffer)) == b"1234"
    device.destroy()


def test_a_closed_context_refuses() -> None:
    ctx = open_software_context()
    x = ctx.zeros(4, f32)
    ctx.close()
    ctx.close()
    for use in (
        lambda: ctx.zeros(4, f32),
        x.numpy,
        lambda: launch(AXPY, x, x, alpha=1.0),
        ctx.submit,
        ctx.trim,
        lambda: x.buffer,
        lambda: x.copy_from(np.zeros(4)),
    ):
        with pytest.raises(ContextError, match="closed"):
            use()


def test_a_lost_device() -> None:
    ctx = open_software_context()
    x = ctx.zeros(4, f32)
    launch(ACCUMULATE, x, ctx.zeros(4, f32), factor=1.0)
    ctx.device.destroy()
    launch(ACCUMULATE, x, ctx.empty(4, f32), factor=1.0)
    with pytest.raises(gpu.DeviceLost, match="accumulate"):
        ctx.submit()
    with pytest.raises(gpu.DeviceLost):
        ctx.zeros(100_000, f32)


def test_memory_that_runs_out(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    wgpu: Any = import_module("wgpu")
    memory: Any = internals(ctx)._memory
    failures = [1]

    class Poor:
        """A device whose memory runs out."""

        def create_buffer(self, **rest: Any) -> Any:
            if failures[0]:
                failures[0] -= 1
                raise wgpu.GPUOutOfMemoryError("Not enough memory left.")
            return device.create_buffer(**rest)

    ctx.trim()
    device: Any = memory._device
    monkeypatch.setattr(memory, "_device", Poor())
    kept = ctx.zeros(12_345, f32)
    assert failures == [0]
    failures[0] = 2
    with pytest.raises(gpu.OutOfMemoryError, match="to create a buffer of"):
        ctx.zeros(54_321, f32)
    failures[0] = 2
    with pytest.raises(MemoryError):
        ctx.zeros(54_321, f32)
    np.testing.assert_array_equal(kept.numpy(), np.zeros(12_345))


def test_trim_frees_what_no_tensor_uses() -> None:
    with open_software_context() as ctx:
        x = ctx.vector(np.arange(1000), f32)
        for _ in range(2):
            launch(CENTRE, x)
        before = ctx.counters.snapshot()
        launch(CENTRE, x)
        assert (ctx.counters - before).buffers_created == 0
        ctx.trim()
        assert len(internals(ctx)._bind_groups.cache) == 0
        before = ctx.counters.snapshot()
        (y,) = launch(CENTRE, x)
        created = ctx.counters - before
        assert created.buffers_created == 2
        assert created.bind_groups_created == 2
        np.testing.assert_array_equal(y.numpy(), np.arange(1000) - 499.5)


def test_the_pool_has_a_cap() -> None:
    with open_software_context() as ctx:
        ctx.limits.pooled_bytes = 0
        for _ in range(2):
            before = ctx.counters.snapshot()
            x = ctx.zeros(1000, f32)
            del x
            assert (ctx.counters - before).buffers_created == 1


# ---- the reference


def test_the_reference_context() -> None:
    with gpu.open(adapter="reference") as ctx:
        x, y = ctx.vector(np.arange(5), f32), ctx.vector(np.ones(5), f32)
        with ctx.batch():
            (z,) = launch(AXPY, x, y, alpha=2.0)
            launch(ACCUMULATE, z, x, factor=-1.0)
            launch(SWAP, x, y)
        assert z.numpy().dtype == np.float32
        np.testing.assert_array_equal(z.numpy(), 1 + np.arange(5))
        np.testing.assert_array_equal(x.numpy(), np.ones(5))
        out = ctx.zeros(5, f32)
        assert launch(AXPY, x, y, alpha=1.0, out=(out,))[0] is out
        np.testing.assert_array_equal(out.numpy(), 1 + np.arange(5))
        with pytest.raises(gpu.AliasError):
            launch(AXPY, x, y, alpha=1.0, out=(y,))
        x[1:3].copy_from(y[2:4])
        np.testing.assert_array_equal(x.numpy(), [1, 2, 3, 1, 1])
        np.testing.assert_array_equal(asyncio.run(x.read_async()), x.numpy())
        ctx.trim()
        ctx.submit()
        assert ctx.counters.calls == 4
        assert ctx.counters.dispatches == 0
        wrap: Any = ctx.wrap
        with pytest.raises(ContextError, match="no device"):
            wrap(bytearray(16), 4, f32)
        with pytest.raises(ContextError, match="NumPy"):
            _ = x.buffer
    with pytest.raises(ContextError, match="closed"):
        launch(AXPY, x, y, alpha=1.0)


# ---- threads and tasks


def test_a_cancelled_read_leaves_the_context_usable(
    ctx: Context, capfd: pytest.CaptureFixture[str]
) -> None:
    """wgpu would report the end of a mapping to an event loop that is closed by then."""
    x = ctx.zeros((1000, 1000), f32)

    async def cancel() -> None:
        task = asyncio.ensure_future(x.read_async())
        await asyncio.sleep(0)
        if task.cancel():  # the device may have been faster
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())
    for _ in range(3):
        np.testing.assert_array_equal(x.numpy(), 0.0)
    assert capfd.readouterr().err == ""


def test_reads_in_an_event_loop(ctx: Context) -> None:
    x, y = ctx.vector(np.arange(64), f32), ctx.vector(np.ones(64), f32)

    async def read() -> None:
        (z,) = launch(AXPY, x, y, alpha=1.0)
        none = ctx.zeros(0, f32)
        reads = [z.read_async(), x.read_async(), none.read_async()]
        arrays: list[Any] = await asyncio.gather(*reads)
        np.testing.assert_array_equal(arrays[0], 1 + np.arange(64))
        np.testing.assert_array_equal(arrays[1], np.arange(64))
        assert arrays[2].size == 0

    asyncio.run(read())


def test_threads_record_without_losing_anything(ctx: Context) -> None:
    def work(seed: int) -> float:
        total = ctx.zeros(256, f32)
        for number in range(30):
            x = ctx.vector(np.full(256, seed + number), f32)
            launch(ACCUMULATE, total, x, factor=1.0)
            if number % 10 == 3:
                total.numpy()
        low, high = (total.numpy().min(), total.numpy().max())
        assert low == high
        return float(low)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert results == [30 * seed + 435 for seed in range(8)]


def test_a_batch_makes_other_threads_wait(ctx: Context) -> None:
    x, y = ctx.zeros(16, f32), ctx.vector(np.ones(16), f32)
    order: list[str] = []
    inside = threading.Event()

    def other() -> None:
        inside.wait()
        launch(ACCUMULATE, x, y, factor=1.0)
        order.append("other")

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    ctx.submit()
    before = ctx.counters.snapshot()
    with ctx.batch():
        inside.set()
        for _ in range(3):
            launch(ACCUMULATE, x, y, factor=1.0)
        thread.join(0.05)
        order.append("batch")
    assert (ctx.counters - before).submits == 1
    thread.join(60)
    assert order == ["batch", "other"]
    np.testing.assert_array_equal(x.numpy(), np.full(16, 4))
