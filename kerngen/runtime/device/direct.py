"""Command encoders that call the C library without wgpu's objects in between.

wgpu makes a descriptor and an object for each encoder, pass and command buffer, and checks
for errors after each call.  Here only the first and the last call of an encoder check: the
library finds the errors of commands when their encoder finishes.  On an H200's host a read
of 4 KB takes 66 us this way, and 78 with wgpu's objects; a call and its submission take 44
instead of 63.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, final

from kerngen.runtime.device import gpu
from kerngen.runtime.device.native import API, handle_of, untested

_MOST_OFFSETS = 64
"""The most dynamic offsets of a bind group; WebGPU promises 12, adapters have more."""


def encoders_of(device: gpu.Device) -> Callable[[], gpu.Encoder]:
    """Return the fastest function known to work that makes a device's command encoders."""
    if untested(device):
        return device.create_command_encoder
    api: Any = import_module(API)
    make, default = api.libf.wgpuDeviceCreateCommandEncoder, api.ffi.NULL
    return lambda: DirectEncoder(make(handle_of(device), default), api)


@final
class DirectEncoder:
    """A command encoder: the methods of `gpu.Encoder`, as calls of the C library."""

    __slots__ = ("_api", "_handle", "_lib")

    def __init__(self, handle: object, api: Any) -> None:
        """Own an encoder that the library made."""
        self._api = api
        self._handle = handle
        self._lib: Any = api.lib

    def begin_compute_pass(
        self, *, timestamp_writes: gpu.Descriptor | None = None
    ) -> DirectPass:
        """Open a compute pass, between two timestamps if they are given."""
        descriptor = self._api.ffi.NULL  # the usual pass needs none
        if timestamp_writes is not None:
            stamps = self._api.new_struct_p(
                "WGPUPassTimestampWrites *",
                querySet=handle_of(timestamp_writes["query_set"]),
                beginningOfPassWriteIndex=timestamp_writes[
                    "beginning_of_pass_write_index"
                ],
                endOfPassWriteIndex=timestamp_writes["end_of_pass_write_index"],
            )
            descriptor = self._api.new_struct_p(
                "WGPUComputePassDescriptor *", timestampWrites=stamps
            )
        begin = self._lib.wgpuCommandEncoderBeginComputePass
        return DirectPass(begin(self._handle, descriptor), self._api)

    def resolve_query_set(
        self,
        query_set: gpu.QuerySet,
        first_query: int,
        query_count: int,
        destination: gpu.Buffer,
        destination_offset: int,
    ) -> None:
        """Record that `query_count` timestamps are copied to a buffer, as u64."""
        self._lib.wgpuCommandEncoderResolveQuerySet(
            self._handle,
            handle_of(query_set),
            first_query,
            query_count,
            handle_of(destination),
            destination_offset,
        )

    def copy_buffer_to_buffer(
        self,
        source: gpu.Buffer,
        source_offset: int,
        destination: gpu.Buffer,
        destination_offset: int,
        size: int,
    ) -> None:
        """Record a copy of `size` bytes."""
        self._lib.wgpuCommandEncoderCopyBufferToBuffer(
            self._handle,
            handle_of(source),
            source_offset,
            handle_of(destination),
            destination_offset,
            size,
        )

    def clear_buffer(self, buffer: gpu.Buffer, offset: int, size: int) -> None:
        """Record that `size` bytes are filled with zeros."""
        self._lib.wgpuCommandEncoderClearBuffer(
            self._handle, handle_of(buffer), offset, size
        )

    def finish(self) -> gpu.CommandBuffer:
        """Close the encoder and return its commands; raise wgpu's error if one is invalid."""
        # `libf` checks for errors after the call, `lib` does not.
        finish = self._api.libf.wgpuCommandEncoderFinish
        commands = finish(self._handle, self._api.ffi.NULL)
        return gpu.CommandBuffer(DirectCommandBuffer(commands, self._lib))

    def __del__(self) -> None:
        """Give the encoder back to the library."""
        self._lib.wgpuCommandEncoderRelease(self._handle)


@final
class DirectPass:
    """A compute pass: the methods of `gpu.ComputePass`; `handle` is the library's pointer."""

    __slots__ = (
        "_dispatch",
        "_lib",
        "_offsets",
        "_set_group",
        "_set_pipeline",
        "handle",
    )

    def __init__(self, handle: object, api: Any) -> None:
        """Own a pass that the library began."""
        self.handle = handle
        lib: Any = api.lib
        self._lib = lib
        # One array for all calls: the library copies the offsets at each.
        self._offsets: Any = api.ffi.new("uint32_t []", _MOST_OFFSETS)
        # Every dispatch calls these three, and to look one up takes 0.05 us.
        self._set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        self._set_group = lib.wgpuComputePassEncoderSetBindGroup
        self._dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups

    def set_pipeline(self, pipeline: gpu.Pipeline) -> None:
        """Select the pipeline of the following dispatches."""
        self._set_pipeline(self.handle, handle_of(pipeline))

    def set_bind_group(
        self, index: int, bind_group: gpu.BindGroup, offsets: Sequence[int]
    ) -> None:
        """Select the buffers of the following dispatches.

        Kernels have one dynamic offset at most, that of the uniform struct.
        """
        held, number = self._offsets, len(offsets)
        if number == 1:
            held[0] = offsets[0]  # every call of a kernel passes here
        else:
            held[0:number] = offsets
        self._set_group(self.handle, index, handle_of(bind_group), number, held)

    def dispatch_workgroups(self, x: int, y: int, z: int = 1, /) -> None:
        """Record a dispatch of x times y times z workgroups."""
        self._dispatch(self.handle, x, y, z)

    def end(self) -> None:
        """Close the pass."""
        self._lib.wgpuComputePassEncoderEnd(self.handle)

    def __del__(self) -> None:
        """Give the pass back to the library."""
        self._lib.wgpuComputePassEncoderRelease(self.handle)


@final
class DirectCommandBuffer:
    """A command buffer: recorded commands, which the queue of a wgpu device submits."""

    # `GPUQueue.submit` reads the attribute `_internal` of what it is given, and no other.
    __slots__ = ("_internal", "_lib")

    def __init__(self, handle: object, lib: Any) -> None:
        """Own what an encoder of the library returned."""
        self._internal = handle
        self._lib = lib

    def __del__(self) -> None:
        """Give it back to the library."""
        self._lib.wgpuCommandBufferRelease(self._internal)
