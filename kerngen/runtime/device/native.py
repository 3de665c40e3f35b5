"""Features of wgpu-native beyond WebGPU, reached by private names of wgpu.

Private names are used with the versions in `TESTED` alone: a C function that is called with
another signature would end the process.  With other versions, and other backends than
wgpu-native, `untested` returns a reason, and each function here returns its public form.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib import import_module
from operator import attrgetter
from threading import Lock, Thread
from time import sleep
from typing import Any, Literal, Protocol, TypeAlias, final
from weakref import WeakKeyDictionary

from kerngen.runtime.device import gpu
from kerngen.runtime.device.c_types import parse_together
from kerngen.runtime.lifecycle import forked, lost

TESTED = {(0, 32): 29}
"""The tested versions of wgpu, each with the major version of its library."""

_NO_CHECKS = 0
"""The set of runtime checks that a shader module keeps, as bit flags: none."""

PATIENCE = 0.5
"""Seconds after which a wait checks whether its device was destroyed, again and again."""

handle_of = attrgetter("_internal")
"""Return the library's pointer in an object of wgpu; no public name leads to it."""

_NATIVE = "wgpu.backends.wgpu_native"
API = f"{_NATIVE}._api"
"""The module of wgpu that calls the library.

Of its names, `lib` has the C functions, `libf` the same with a check for errors after each
call, and `ffi` is cffi's.
"""

_loaded_by: dict[Literal["process"], int] = {}
"""The process that loaded wgpu first; a fork inherits the number, and has another."""


class MakeModule(Protocol):
    """A function that makes shader modules, as `Device.create_shader_module` does."""

    def __call__(self, *, label: str, code: str) -> gpu.ShaderModule:
        """Compile WGSL."""
        ...


def load() -> Any:
    """Import wgpu, with its C types parsed in one go, and return it.

    Raises ContextError in a process that was forked from one that has it loaded: its
    instance has lost its threads, and would wait for them for ever.
    """
    if _loaded_by.setdefault("process", os.getpid()) != os.getpid():
        raise forked()
    wgpu = import_module("wgpu")
    # The backend loads at the first use of `wgpu.gpu`, not with wgpu itself.
    import_module("wgpu.backends.auto")
    native = sys.modules.get(_NATIVE)
    if native is not None and not _untested_versions():
        parse_together(native.ffi)
    return wgpu


def unchecked_modules(device: gpu.Device) -> MakeModule | str:
    """Return a function that makes shader modules without runtime checks, or why there is none.

    Without these checks, accesses to workgroup and private arrays are not bounds-checked, and
    endless loops are not ended.
    """
    reason = untested(device)
    if reason:
        return reason
    api: Any = import_module(API)
    lib, ffi = api.lib, api.ffi

    def make(*, label: str, code: str) -> gpu.ShaderModule:
        # In C: descriptor.nextInChain -> source, whose chain.sType names its type.
        source = api.new_struct_p(
            "WGPUShaderSourceWGSL *", code=api.to_c_string_view(code)
        )
        source[0].chain.next = ffi.NULL
        source[0].chain.sType = lib.WGPUSType_ShaderSourceWGSL
        descriptor = api.new_struct_p(
            "WGPUShaderModuleDescriptor *",
            nextInChain=ffi.cast("WGPUChainedStruct *", source),
            label=api.to_c_string_view(label),
        )
        module = api.libf.wgpuDeviceCreateShaderModuleTrusted(
            handle_of(device), descriptor, _NO_CHECKS
        )
        made: gpu.ShaderModule = api.GPUShaderModule(label, module, device)
        return made

    return make


class MakeBindGroup(Protocol):
    """A function that makes bind groups, as `Device.create_bind_group` does."""

    def __call__(
        self,
        *,
        label: str,
        layout: gpu.BindGroupLayout,
        entries: Sequence[gpu.Descriptor],
    ) -> gpu.BindGroup:
        """Make a bind group of buffers."""
        ...


def bind_groups_of(device: gpu.Device) -> MakeBindGroup:
    """Return the fastest function known to work that makes a device's bind groups.

    wgpu's own checks, which repeat those of the library and take as long, are left out.
    """
    if untested(device):
        return device.create_bind_group
    api: Any = import_module(API)
    ffi, new = api.ffi, api.libf.wgpuDeviceCreateBindGroup
    # To convert a label to a C string takes 3 us, a third of a bind group.  The descriptor
    # has only a pointer to the string: the cache also keeps that alive.
    text = lru_cache(1024)(api.to_c_string_view)

    def make(
        *, label: str, layout: gpu.BindGroupLayout, entries: Sequence[gpu.Descriptor]
    ) -> gpu.BindGroup:
        array = ffi.new("WGPUBindGroupEntry[]", len(entries))
        for slot, entry in zip(array, entries, strict=True):
            resource: Any = entry["resource"]
            slot.binding = entry["binding"]
            slot.buffer = handle_of(resource["buffer"])
            slot.offset = resource["offset"]
            slot.size = resource["size"]
        descriptor = ffi.new("WGPUBindGroupDescriptor *")
        descriptor.label = text(label)
        descriptor.layout = handle_of(layout)
        descriptor.entryCount = len(entries)
        descriptor.entries = array
        group = new(handle_of(device), descriptor)
        made: gpu.BindGroup = api.GPUBindGroup(label, group, device)
        return made

    return make


Command: TypeAlias = tuple[gpu.Pipeline, gpu.BindGroup, int | None, int, int]
"""A dispatch: pipeline, bind group, dynamic offset of its uniforms, workgroups in x and y.

The offset is None if the shader has no uniforms.
"""


class Commands(Protocol):
    """A sequence of dispatches, prepared to be encoded many times."""

    def __len__(self) -> int:
        """Return the number of dispatches."""
        ...

    def encode(self, compute: gpu.ComputePass, start: int, stop: int) -> None:
        """Encode the dispatches number `start` up to, but not including, `stop` in a pass.

        The pass is one of an encoder that `encoders_of` made.
        """
        ...


@final
class PlainCommands:
    """Dispatches that are encoded by the public methods of a pass."""

    def __init__(self, commands: Sequence[Command]) -> None:
        """Prepare to encode these dispatches."""
        self._commands = commands

    def __len__(self) -> int:
        """Return the number of dispatches."""
        return len(self._commands)

    def encode(self, compute: gpu.ComputePass, start: int, stop: int) -> None:
        """Encode the dispatches number `start` up to, but not including, `stop`."""
        last: gpu.Pipeline | None = None
        for pipeline, group, offset, x, y in self._commands[start:stop]:
            if pipeline is not last:
                compute.set_pipeline(pipeline)
                last = pipeline
            compute.set_bind_group(0, group, () if offset is None else (offset,))
            compute.dispatch_workgroups(x, y)


@final
class DirectCommands:
    """Dispatches encoded by calls of the C library, with prepared arguments.

    A dispatch is two or three calls of C, about 1 us; a call of a kernel takes about 5.
    """

    def __init__(self, commands: Sequence[Command], api: Any) -> None:
        """Look up the library's pointers of the commands' objects."""
        self._kept = commands  # the pointers are valid as long as wgpu's objects live
        self._lib: Any = api.lib
        self._ready = [
            (
                handle_of(pipeline),
                handle_of(group),
                int(offset is not None),
                api.ffi.new("uint32_t []", [offset or 0]),
                x,
                y,
            )
            for pipeline, group, offset, x, y in commands
        ]

    def __len__(self) -> int:
        """Return the number of dispatches."""
        return len(self._ready)

    def encode(self, compute: gpu.ComputePass, start: int, stop: int) -> None:
        """Encode the dispatches number `start` up to, but not including, `stop`."""
        # `handle` is an attribute of `DirectPass`, which `gpu.ComputePass` lacks.
        lib, to = self._lib, attrgetter("handle")(compute)
        set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        set_bind_group = lib.wgpuComputePassEncoderSetBindGroup
        dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        last: object = None
        for pipeline, group, count, offsets, x, y in self._ready[start:stop]:
            if pipeline is not last:
                set_pipeline(to, pipeline)
                last = pipeline
            set_bind_group(to, 0, group, count, offsets)
            dispatch(to, x, y, 1)


def commands_for(device: gpu.Device) -> Callable[[Sequence[Command]], Commands]:
    """Return a function that prepares dispatches for a device's passes."""
    if untested(device):
        return PlainCommands
    return partial(DirectCommands, api=import_module(API))


def tick_seconds(device: gpu.Device) -> float:
    """Return how many seconds a tick of the device's timestamps takes: 1e-9 in WebGPU."""
    if type(device).__module__ != API:
        return 1e-9
    lib: Any = import_module(API).lib
    return float(lib.wgpuQueueGetTimestampPeriod(handle_of(device.queue))) * 1e-9


def wait(device: gpu.Device, promise: gpu.Promise) -> None:
    """Wait for a promise; raise DeviceLost if its device is destroyed meanwhile.

    A thread of the device fulfils wgpu's promises.  The thread ends with the device, and then
    `promise.sync_wait` would wait for ever.
    """
    if not untested(device):
        # wgpu's thread sets this event when the promise is kept.
        kept = attrgetter("_thread_event")(promise)
        while not kept.wait(PATIENCE) and not destroyed(device):
            pass
        if destroyed(device):
            raise lost()
    promise.sync_wait()


async def wait_async(
    device: gpu.Device, promise: gpu.Promise, mapped: gpu.Buffer
) -> None:
    """Wait for the mapping of a buffer without blocking the event loop; see `wait`."""
    if untested(device):
        return await promise
    _outlive_loop(promise)
    _WATCH.add(promise, device, mapped)
    try:
        await promise
    except RuntimeError:
        if destroyed(device):
            raise lost() from None
        raise
    return None


def _outlive_loop(promise: gpu.Promise) -> None:
    """Ignore the RuntimeError of a promise that is kept after its event loop was closed.

    Nobody awaits the promise then.
    """
    call_soon: Callable[..., object] | None = vars(promise)["_call_soon_threadsafe"]
    if call_soon is None:
        return

    def call(*callback: Any) -> None:
        try:
            call_soon(*callback)
        except RuntimeError:
            return  # the loop is closed: asyncio has no other reason

    vars(promise)["_call_soon_threadsafe"] = call


@final
class _Watch:
    """Ends the awaited mappings of destroyed devices, which wgpu leaves pending.

    It destroys the mapped buffer: then the library calls the promise's callback.  To settle
    the promise alone would free that callback, and the library would still call it when the
    device is released: a segmentation fault in one of five runs of the tests.

    One thread watches all awaited promises, and ends when none is left.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._awaited: WeakKeyDictionary[gpu.Promise, tuple[gpu.Device, gpu.Buffer]]
        self._awaited = WeakKeyDictionary()
        self._thread: Thread | None = None

    def add(self, promise: gpu.Promise, device: gpu.Device, mapped: gpu.Buffer) -> None:
        """Watch a promise, with a new thread if none runs."""
        with self._lock:
            self._awaited[promise] = device, mapped
            if self._thread is None:
                self._thread = Thread(target=self._look_after, daemon=True)
                self._thread.start()

    def _look_after(self) -> None:
        left = True
        while left:
            sleep(PATIENCE)
            with self._lock:
                left = False
                try:
                    left = self._look()
                finally:
                    # Under the lock: `add` must not count on a thread that is ending.
                    if not left:
                        self._thread = None

    def _look(self) -> bool:
        """End the mappings of destroyed devices; return whether promises are left.

        A function of its own, so that no local variable keeps a promise alive while the
        thread sleeps.
        """
        for promise, (device, mapped) in list(self._awaited.items()):
            settled = _settled(promise)
            if settled or destroyed(device):
                del self._awaited[promise]
                if not settled:
                    mapped.destroy()
        return bool(self._awaited)


_WATCH = _Watch()


def _settled(promise: gpu.Promise) -> bool:
    return bool(attrgetter("_thread_event")(promise).is_set())


def destroyed(device: gpu.Device) -> bool:
    """Whether a device was destroyed: wgpu drops the thread that polls it."""
    return attrgetter("_poller")(device) is None


def untested(device: gpu.Device) -> str:
    """Return why private functions of wgpu are not safe on this device, or "" if they are."""
    module = type(device).__module__
    if module != API:
        return f"the device is one of {module}, not of wgpu-native"
    return _untested_versions()


def _untested_versions() -> str:
    wgpu, native = import_module("wgpu"), import_module(_NATIVE)
    version, library = wgpu.version_info[:2], native.lib_version_info[0]
    if TESTED.get(version) == library:
        return ""
    return f"wgpu {wgpu.__version__} on wgpu-native {library} was not tested for it"
