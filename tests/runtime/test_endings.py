"""Devices that are lost, memory that is not there, processes that fork: said, not hung."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from threading import current_thread
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, Matrix, f32
from kerngen.runtime.device import native
from kerngen.runtime.device.gpu import STORAGE, translate
from kerngen.runtime.device.pool import Pool
from kerngen.runtime.device.transfer import PendingReads
from kerngen_kernels import elementwise, matmul
from tests.conftest import open_software_context
from tests.runtime.kernels import internals

from .listed import adapters

Use = Callable[[Context, Matrix[f32]], object]


def batch(ctx: Context, x: Matrix[f32]) -> None:
    with ctx.batch():
        matmul.matmul_nn(x, x)


def timed(ctx: Context, x: Matrix[f32]) -> None:
    with ctx.timed():
        matmul.matmul_nn(x, x)


def profile(ctx: Context, x: Matrix[f32]) -> None:
    with ctx.profile():
        matmul.matmul_nn(x, x)


def capture(ctx: Context, x: Matrix[f32]) -> None:
    with ctx.capture():
        matmul.matmul_nn(x, x)


USES: dict[str, Use] = {
    "read": lambda _, x: x.numpy(),
    "read_async": lambda _, x: asyncio.run(x.read_async()),
    "zeros": lambda ctx, _: ctx.zeros(4, f32),
    "vector": lambda ctx, _: ctx.vector([1.0], f32),
    "call": lambda _, x: matmul.matmul_nn(x, x),
    "another": lambda _, x: elementwise.tanh(x.reshape(9)),
    "submit": lambda ctx, _: ctx.submit(),
    "copy": lambda _, x: x.copy_from(x[:].reshape((3, 3))),
    "upload": lambda _, x: x.copy_from(np.ones((3, 3))),
    "clear": lambda _, x: x.clear(),
    "buffer": lambda _, x: x.buffer,
    "batch": batch,
    "timed": timed,
    "capture": capture,
    "profile": profile,
    "trim": lambda ctx, _: ctx.trim(),
}


def sizes_of_caches(ctx: Context) -> dict[str, int]:
    """Entries of caches, and free bytes of pools, by name."""
    caches: dict[str, Any] = {**ctx.caches}
    return {
        name: cache.free_bytes if isinstance(cache, Pool) else len(cache)
        for name, cache in caches.items()
    }


@pytest.mark.parametrize("first", ["read", "read_async", "another", "batch", "submit"])
def test_once_a_device_is_lost_every_use_says_so(first: str) -> None:
    ctx = open_software_context()
    x = ctx.matrix(np.eye(3), f32)
    matmul.matmul_nn(x, x)
    ctx.device.destroy()
    for name in (first, *USES):
        with pytest.raises(gpu.DeviceLost, match="Open a new context"):
            USES[name](ctx, x)
    assert sizes_of_caches(ctx) == dict.fromkeys(ctx.caches, 0)
    assert repr(x) == "Tensor(f32[3, 3], software)"
    ctx.close()
    with pytest.raises(gpu.DeviceLost):
        x.numpy()
    with open_software_context() as again:
        y = again.matrix(np.eye(3), f32)
        np.testing.assert_array_equal(matmul.matmul_nn(y, y).numpy(), np.eye(3))
        with pytest.raises(gpu.ContextError):
            matmul.matmul_nn(y, x)


def lose_while_reading() -> None:
    ctx = open_software_context()
    x = ctx.zeros((1000, 1000), f32)
    device = ctx.device

    async def lose() -> None:
        reading = asyncio.create_task(x.read_async())
        await asyncio.sleep(0)
        device.destroy()
        await asyncio.wait_for(reading, 60)

    with suppress(gpu.DeviceLost):
        asyncio.run(lose())
    with pytest.raises(gpu.DeviceLost):
        x.numpy()


def test_a_device_that_is_lost_while_a_read_is_awaited() -> None:
    """The library forgets a promise of a device that is destroyed, unless it was kept.

    If the promise is settled behind the library's back, collecting the device crashes.
    """
    for _ in range(3):
        lose_while_reading()
        gc.collect()


def test_a_watch_that_failed_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> bool:
        raise ValueError("of the library's")

    watch: Any = attrgetter("_Watch")(native)()
    watch._thread = current_thread()
    watch._awaited[fails] = None, None
    monkeypatch.setattr(native, "PATIENCE", 0)
    monkeypatch.setattr(native, "_settled", fails)
    with pytest.raises(ValueError, match="of the library's"):
        watch._look_after()
    assert watch._thread is None


def start_reading(x: Matrix[f32]) -> PendingReads:
    backend: Any = x.ctx.backend
    reading: PendingReads = backend._begin_reads([(x.lease, x.offset, x.nbytes)])
    return reading


def test_a_device_that_is_lost_while_a_read_waits() -> None:
    ctx = open_software_context()
    backend: Any = ctx.backend
    reading = start_reading(ctx.zeros((1000, 1000), f32))
    ctx.device.destroy()
    with pytest.raises(gpu.DeviceLost), backend._abandoning(reading):
        reading.mapping.wait()
    with pytest.raises(gpu.DeviceLost):
        ctx.zeros(1, f32)


def test_a_device_that_is_lost_when_a_read_has_arrived() -> None:
    ctx = open_software_context()
    backend = internals(ctx)
    reading = start_reading(ctx.zeros((10, 10), f32))
    reading.mapping.wait()
    ctx.device.destroy()
    with pytest.raises(gpu.DeviceLost):
        backend._end_read(reading)


def test_a_context_that_is_closed_while_a_read_waits() -> None:
    ctx = open_software_context()
    device, backend = ctx.device, internals(ctx)
    reading = start_reading(ctx.matrix(np.eye(100), f32))
    ctx.close()
    reading.mapping.wait()
    (data,) = backend._end_read(reading)
    assert data.view(np.float32).sum() == 100
    with pytest.raises(Exception, match="lost"):
        device.create_buffer(size=16, usage=STORAGE)


class Fails:
    """A device of which one method fails as wgpu does."""

    def __init__(self, device: Any, method: str, error: Exception) -> None:
        self._device = device
        self._method = method
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            raise self._error
        return getattr(self._device, name)


@pytest.mark.parametrize("name", ["lost", "device_lost", "lost_device"])
def test_the_name_of_a_kernel_loses_no_device(name: str) -> None:
    wgpu: Any = import_module("wgpu")
    text = f"Validation Error\n  In wgpuDeviceCreateBindGroup, label = '{name}'"
    error = translate(wgpu.GPUValidationError(text), "to try")
    assert type(error) is gpu.ValidationError


FOUND_ONCE = {
    "create_bind_group": "_make",
    "create_command_encoder": "_make_encoder",
}
"""Where a context keeps the functions that it looks for when it is opened."""


@pytest.mark.parametrize(
    ("part", "method", "use"),
    [
        ("_memory", "create_buffer", "zeros"),
        ("_bind_groups", "create_bind_group", "call"),
        ("_recorder", "create_command_encoder", "call"),
    ],
)
def test_memory_that_runs_out_anywhere(
    monkeypatch: pytest.MonkeyPatch, part: str, method: str, use: str
) -> None:
    wgpu: Any = import_module("wgpu")
    with open_software_context() as ctx:
        x = ctx.matrix(2 * np.eye(3), f32)
        owner: Any = getattr(internals(ctx), part)
        full = wgpu.GPUOutOfMemoryError("Not enough memory left.")

        def fail(**_: object) -> None:
            raise full

        with monkeypatch.context() as patch:
            if method in FOUND_ONCE:
                patch.setattr(owner, FOUND_ONCE[method], fail)
            patch.setattr(owner, "_device", Fails(owner._device, method, full))
            with pytest.raises(gpu.OutOfMemoryError, match="Drop tensors") as caught:
                USES[use](ctx, x)
            assert isinstance(caught.value, MemoryError)
        np.testing.assert_array_equal(matmul.matmul_nn(x, x).numpy(), 4 * np.eye(3))


LIMITED = """
import resource
import numpy as np
import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise
ctx = gpu.open(adapter="software")
x = ctx.vector([-1.0, 1.0], f32)
elementwise.relu(x).numpy()
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**29, now + 2**29))
held = []
try:
    while len(held) < 100:
        held.append(ctx.zeros(2**24, f32))
except gpu.OutOfMemoryError as error:
    print("Drop tensors" in str(error), len(held) > 1)
more = len(held)
del held[:]
held = [ctx.zeros(2**24, f32) for _ in range(more - 1)]
print(elementwise.relu(x).numpy())
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory so")
def test_a_process_that_may_have_no_more_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True True\n[0. 1.]\n", done.stderr


@pytest.mark.parametrize("kind", ["GPUOutOfMemoryError", "GPUValidationError"])
def test_memory_that_runs_out_in_any_class_of_the_library(kind: str) -> None:
    """As lavapipe under a limit of address space says it."""
    wgpu: Any = import_module("wgpu")
    text = "Validation Error\n\nCaused by:\n  In wgpuDeviceCreateBuffer\n    Not enough memory left."
    error = translate(getattr(wgpu, kind)(text), "to try")
    assert type(error) is gpu.OutOfMemoryError


def test_an_adapter_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    wgpu: Any = import_module("wgpu")
    adapter, *_ = wgpu.gpu.enumerate_adapters_sync()

    def gone(_self: object, **_: object) -> None:
        raise RuntimeError("Request device failed: the adapter is gone")

    monkeypatch.setattr(adapter.__class__, "request_device_sync", gone)
    with pytest.raises(gpu.NoAdapter, match=r"can't open a device: .* gone"):
        gpu.open(adapter="software")


def test_a_missing_adapter_says_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    adapters(monkeypatch, "CPU")
    monkeypatch.setenv("KERNGEN_ADAPTER", "gpu")
    with pytest.raises(gpu.NoAdapter, match="KERNGEN_ADAPTER=software or reference"):
        gpu.open()


FORK = """
import gc, os, sys, warnings
warnings.simplefilter("ignore")
import faulthandler
import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise
ctx = gpu.open(adapter="software")
x = ctx.vector([-1.0, 1.0], f32)
elementwise.relu(x).numpy()
gc.disable()
for _ in range(3):
    garbage = gpu.open(adapter="software")
    elementwise.relu(garbage.zeros(9, f32)).numpy()
    garbage.cycle = garbage
    dropped = gpu.open(adapter="software")
    dropped.submit()
del garbage
if os.fork() == 0:
    faulthandler.dump_traceback_later(30, exit=True)
    del dropped
    gc.collect()
    for use in (
        x.numpy, ctx.submit, lambda: elementwise.relu(x), lambda: ctx.zeros(9999, f32),
        lambda: gpu.open(adapter="software"),
    ):
        try:
            use()
        except gpu.ContextError as error:
            assert "get_context('spawn')" in str(error)
        else:
            os._exit(3)
    ctx.close()
    assert gpu.open(adapter="reference").kind == "reference"
    os._exit(7)
_, status = os.wait()
assert elementwise.relu(x).numpy().tolist() == [0, 1]
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_process_is_told_and_does_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr


EXIT = """
import threading
import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import matmul
ctx = gpu.open(adapter="software")
x = ctx.zeros((300, 300), f32)
def work():
    y = x
    while True:
        y = matmul.matmul_nn(y, x)
        ctx.submit()
threading.Thread(target=work, daemon=True).start()
with ctx.batch():
    y = matmul.matmul_nn(x, x)
matmul.matmul_nn(y, x)
print("end", flush=True)
"""


def test_an_interpreter_ends_with_work_in_flight() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXIT],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
