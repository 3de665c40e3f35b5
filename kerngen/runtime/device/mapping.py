"""Reading buffers back: how the host maps a staging buffer that the device wrote.

wgpu maps by a promise, which a thread of the device keeps: the thread wakes, polls the
device, and wakes the reader, about 60 us for the round.  A `DirectMapping` polls in the
reader's own thread instead; a `PromisedMapping` is for `read_async`, and for versions of
wgpu whose private names were not tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import count
from threading import current_thread, main_thread
from time import perf_counter, sleep
from types import TracebackType
from typing import Any, Final, Protocol, final

from kerngen.runtime.device.gpu import MAP_READ, Buffer, Device
from kerngen.runtime.device.native import (
    API,
    destroyed,
    handle_of,
    untested,
    wait,
    wait_async,
)
from kerngen.runtime.lifecycle import lost


class Mapping(Protocol):
    """A staging buffer that is being mapped into the host's memory, to be read."""

    def wait(self) -> None:
        """Wait until the buffer is mapped; raise DeviceLost if the device is destroyed."""
        ...

    def view(self) -> memoryview:
        """Return the mapped bytes, valid until `unmap`."""
        ...

    def unmap(self) -> None:
        """End the mapping, so that the device can use the buffer again."""
        ...


LONGEST_PAUSE: Final = 1e-3
"""The most seconds that a reader sleeps between two polls."""


@final
@dataclass(frozen=True, slots=True)
class Polling:
    """How a reader polls: for `seconds` without a pause, then with pauses that grow.

    A pause is a `share` of the time waited so far, and at most `LONGEST_PAUSE`.  So much later,
    and what it takes to sleep and to wake, a reader may see that the device is done.
    """

    seconds: float
    share: float


Map = Callable[[Buffer, int], Mapping]
"""Begins to map bytes of a buffer, as many as the number, from its start."""


@final
class PromisedMapping:
    """A mapping that waits for wgpu's promise, which an event loop can await."""

    def __init__(self, device: Device, buffer: Buffer, nbytes: int) -> None:
        """Begin to map the first `nbytes` of a buffer."""
        self._device = device
        self._buffer = buffer
        self._nbytes = nbytes
        # wgpu-py's "READ" would submit an empty encoder first; ours has just run.
        self._promise = buffer.map_async("READ_NOSYNC", 0, nbytes)

    def wait(self) -> None:
        """Wait until the buffer is mapped."""
        wait(self._device, self._promise)

    async def wait_async(self) -> None:
        """Wait until the buffer is mapped, without blocking the event loop."""
        await wait_async(self._device, self._promise, self._buffer)

    def view(self) -> memoryview:
        """Return the mapped bytes."""
        return self._buffer.read_mapped(0, self._nbytes, copy=False)

    def unmap(self) -> None:
        """End the mapping."""
        self._buffer.unmap()


@final
class DirectMapping:
    """A mapping that polls the device in the reader's own thread."""

    def __init__(
        self, device: Device, polling: Polling, buffer: Buffer, nbytes: int
    ) -> None:
        """Begin to map; a reader then polls by the times of `polling`."""
        self._device = device
        self._polling = polling
        self._library = library()
        self._buffer = handle_of(buffer)
        self._nbytes = nbytes
        self._is_done = False
        self._failure: BaseException | None = None
        self._library.map(self._buffer, nbytes, self)

    def finish(self, failure: BaseException | None) -> None:
        """Note that mapping has ended, from any thread; `failure` is the error if it failed."""
        self._failure = failure
        self._is_done = True

    def wait(self) -> None:
        """Poll until the buffer is mapped: without a pause at first, then with pauses.

        wgpu's thread would wait for all that is submitted, and so let the device run
        empty while results of earlier submissions are read: 0.4 ms of each token's 4.7
        where a model of 4B parameters decodes on an H200.
        """
        start = perf_counter()
        device = handle_of(self._device)
        # A destroyed device must not be polled: it is checked before each poll.
        self._check_device()
        self._library.poll(device)
        while not self._is_done:
            waited = perf_counter() - start
            if waited > self._polling.seconds:
                sleep(min(waited * self._polling.share, LONGEST_PAUSE))
            self._check_device()
            self._library.poll(device)
        self._check_device()
        if self._failure is not None:
            raise self._failure

    def view(self) -> memoryview:
        """Return the mapped bytes."""
        self._check_device()
        return self._library.view(self._buffer, self._nbytes)

    def unmap(self) -> None:
        """End the mapping."""
        self._library.unmap(self._buffer)

    def _check_device(self) -> None:
        if destroyed(self._device):
            raise lost()


@final
class _Library:
    """The calls of the C library that mappings need, with one callback for all of them.

    The callback gets a number as its user data, and `_pending` has the mapping of each
    number.  `_interrupt` is what a signal's handler raised within a callback.
    """

    def __init__(self) -> None:
        api: Any = import_module(API)
        self._ffi: Any = api.ffi
        self._lib: Any = api.lib
        self._checked: Any = api.libf
        self._text: Any = api.from_c_string_view
        self._numbers = count(1)
        self._pending: dict[int, DirectMapping] = {}
        self._interrupt: BaseException | None = None
        self._info: Any = self._ffi.new("WGPUBufferMapCallbackInfo *")
        self._info.mode = self._lib.WGPUCallbackMode_AllowProcessEvents
        self._callback = self._ffi.callback(
            "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
            self._note,
            onerror=self._interrupted,
        )

    def map(self, buffer: object, nbytes: int, mapping: DirectMapping) -> None:
        """Begin to map a buffer; a poll, in whatever thread, then calls `mapping.finish`."""
        number = next(self._numbers)
        info = self._ffi.new("WGPUBufferMapCallbackInfo *", self._info[0])
        info.callback = self._callback
        info.userdata1 = self._ffi.cast("void *", number)
        self._pending[number] = mapping
        # Noted before the call: a poll in another thread may call back at once.
        try:
            self._checked.wgpuBufferMapAsync(buffer, MAP_READ, 0, nbytes, info[0])
        except BaseException:
            self._pending.pop(number, None)
            raise

    def poll(self, device: object) -> None:
        """Run the callbacks of finished mappings, without waiting for others.

        Raises the interrupt that came within a callback, in the main thread.
        """
        try:
            self._lib.wgpuDevicePoll(device, 0, self._ffi.NULL)
        finally:
            interrupt = None
            if self._interrupt is not None and current_thread() is main_thread():
                interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def view(self, buffer: object, nbytes: int) -> memoryview:
        """Return the bytes of a mapped buffer."""
        start = self._checked.wgpuBufferGetConstMappedRange(buffer, 0, nbytes)
        if start == self._ffi.NULL:
            raise RuntimeError("The library has not mapped the buffer.")
        return memoryview(self._ffi.buffer(start, nbytes))

    def unmap(self, buffer: object) -> None:
        """Give a buffer back."""
        self._checked.wgpuBufferUnmap(buffer)

    def _note(self, status: int, message: Any, number: Any, _: object) -> None:
        """Finish the mapping of a number: the callback that the library calls."""
        self._finish(number, self._failure(status, message))

    def _failure(self, status: int, message: Any) -> BaseException | None:
        if status == self._lib.WGPUMapAsyncStatus_Success:
            return None
        return RuntimeError(f"Could not map a buffer: {self._text(message)}")

    def _finish(self, number: Any, failure: BaseException | None) -> None:
        """Finish a mapping, and only then take it out of those that are pending.

        So whatever an interrupt leaves undone, `_interrupted` can do again.
        """
        key = self._as_int(number)
        mapping = self._pending.get(key)
        if mapping is not None:
            mapping.finish(failure)
            del self._pending[key]

    def _interrupted(
        self, _: object, error: BaseException, trace: TracebackType
    ) -> None:
        """Finish a mapping whose callback raised an error, which cffi would only print.

        Python runs a signal's handler in the main thread, after any call within `_note`; the
        mapping's reader may be in another one.  So `poll` raises what came there, and any
        other error is the reader's.
        """
        arguments = trace.tb_frame.f_locals  # of `_note`
        failure: BaseException | None = error
        if current_thread() is main_thread():
            self._interrupt = error
            failure = self._failure(arguments["status"], arguments["message"])
        self._finish(arguments["number"], failure)

    def _as_int(self, number: Any) -> int:
        return int(self._ffi.cast("uintptr_t", number))


library = cache(_Library)
"""The one `_Library` of the process, made at its first use: wgpu is loaded by then."""


def mapping_of(device: Device, polling: Polling) -> Map:
    """Return a function that maps buffers for the host to read, which may poll the device."""
    if untested(device):
        return partial(PromisedMapping, device)
    return partial(DirectMapping, device, polling)
