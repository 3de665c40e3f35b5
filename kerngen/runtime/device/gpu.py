"""A typed facade over the part of wgpu that the runtime uses.

wgpu ships no type information; these protocols keep its `Any` at the door.  Devices
enter through `opening.py`, by a cast; everything else comes from a device.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Literal, NewType, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import (
    DeviceLost,
    Error,
    OutOfMemoryError,
    ValidationError,
)

GPUBuffer: TypeAlias = Any
"""A caller's `wgpu.GPUBuffer`."""

GPUDevice: TypeAlias = Any
"""A caller's `wgpu.GPUDevice`."""

# Objects that the runtime hands on without a look inside.
BindGroup = NewType("BindGroup", object)
BindGroupLayout = NewType("BindGroupLayout", object)
CommandBuffer = NewType("CommandBuffer", object)
Pipeline = NewType("Pipeline", object)
PipelineLayout = NewType("PipelineLayout", object)
QuerySet = NewType("QuerySet", object)
ShaderModule = NewType("ShaderModule", object)

# WebGPU's flags of `GPUBufferUsage`; MAP_READ is `GPUMapMode.READ`, too.  wgpu has the same,
# but is not imported before a context is opened.
MAP_READ = 0x1
COPY_SRC = 0x4
COPY_DST = 0x8
UNIFORM = 0x40
STORAGE = 0x80
QUERY_RESOLVE = 0x200

Descriptor: TypeAlias = Mapping[str, object]
"""The fields of a WebGPU descriptor by name: `{"binding": 0, "visibility": ...}`."""


class Promise(Awaitable[None], Protocol):
    """The result of `map_async`, which can be waited for."""

    def sync_wait(self) -> None:
        """Block until the buffer is mapped."""
        ...


class Buffer(Protocol):
    """A buffer on the device."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        ...

    @property
    def usage(self) -> int:
        """The usage flags of WebGPU: what the buffer may be used for."""
        ...

    @property
    def map_state(self) -> str:
        """The state of mapping: 'unmapped', 'pending' or 'mapped'."""
        ...

    def map_async(self, mode: str, offset: int, size: int) -> Promise:
        """Begin to map a range into the host's memory."""
        ...

    def read_mapped(self, buffer_offset: int, size: int, *, copy: bool) -> memoryview:
        """Return the bytes of a mapped range."""
        ...

    def unmap(self) -> None:
        """End the mapping, so that the device can use the buffer again."""
        ...

    def destroy(self) -> None:
        """Free the memory as soon as submitted work is done with it."""
        ...


class ComputePass(Protocol):
    """An open compute pass."""

    def set_pipeline(self, pipeline: Pipeline) -> None:
        """Select the pipeline of the following dispatches."""
        ...

    def set_bind_group(
        self, index: int, bind_group: BindGroup, offsets: Sequence[int]
    ) -> None:
        """Select the buffers of the following dispatches."""
        ...

    def dispatch_workgroups(self, x: int, y: int, z: int = 1, /) -> None:
        """Record a dispatch of x times y times z workgroups."""
        ...

    def end(self) -> None:
        """Close the pass."""
        ...


class Encoder(Protocol):
    """An open command encoder."""

    def begin_compute_pass(self, *, timestamp_writes: Descriptor = ...) -> ComputePass:
        """Open a compute pass, between two timestamps if they are given."""
        ...

    def resolve_query_set(
        self,
        query_set: QuerySet,
        first_query: int,
        query_count: int,
        destination: Buffer,
        destination_offset: int,
    ) -> None:
        """Record that `query_count` timestamps are copied to a buffer, as u64."""
        ...

    def copy_buffer_to_buffer(
        self,
        source: Buffer,
        source_offset: int,
        destination: Buffer,
        destination_offset: int,
        size: int,
    ) -> None:
        """Record a copy of `size` bytes."""
        ...

    def clear_buffer(self, buffer: Buffer, offset: int, size: int) -> None:
        """Record that `size` bytes are filled with zeros."""
        ...

    def finish(self) -> CommandBuffer:
        """Close the encoder, and return its commands."""
        ...


class Queue(Protocol):
    """The device's queue."""

    def submit(self, command_buffers: Sequence[CommandBuffer]) -> None:
        """Submit recorded commands to run."""
        ...

    def write_buffer(
        self, buffer: Buffer, offset: int, data: memoryview | NDArray[np.uint8]
    ) -> None:
        """Upload bytes to a buffer: after all earlier submissions, before the next one."""
        ...


class Device(Protocol):
    """An open device."""

    @property
    def queue(self) -> Queue:
        """The device's queue."""
        ...

    @property
    def limits(self) -> Mapping[str, int]:
        """The device's limits, by names such as 'max-buffer-size'."""
        ...

    @property
    def features(self) -> Iterable[str]:
        """The device's features."""
        ...

    def create_buffer(self, *, size: int, usage: int) -> Buffer:
        """Create a buffer."""
        ...

    def create_query_set(
        self, *, type: Literal["timestamp"], count: int  # noqa: A002 - wgpu's word
    ) -> QuerySet:
        """Create room for `count` timestamps, which passes fill."""
        ...

    def create_shader_module(self, *, label: str, code: str) -> ShaderModule:
        """Compile WGSL."""
        ...

    def create_bind_group_layout(
        self, *, entries: Sequence[Descriptor]
    ) -> BindGroupLayout:
        """Create the layout of a bind group: the kinds of its buffers."""
        ...

    def create_pipeline_layout(
        self, *, bind_group_layouts: Sequence[BindGroupLayout]
    ) -> PipelineLayout:
        """Create the layout of a pipeline: those of its bind groups."""
        ...

    def create_compute_pipeline(
        self, *, label: str, layout: PipelineLayout, compute: Descriptor
    ) -> Pipeline:
        """Compile an entry point into a pipeline."""
        ...

    def create_bind_group(
        self, *, label: str, layout: BindGroupLayout, entries: Sequence[Descriptor]
    ) -> BindGroup:
        """Create a bind group of buffers."""
        ...

    def create_command_encoder(self) -> Encoder:
        """Begin to record commands."""
        ...

    def destroy(self) -> None:
        """Free the device and everything on it."""
        ...


_RAISED_BY_WGPU = frozenset(
    {KeyError, OverflowError, RuntimeError, TypeError, ValueError}
)
"""Python's classes that wgpu raises besides its own: exactly these, no derived ones."""


_LOST = re.compile(r"device (?:is |was )?lost|lost (?:the )?device", re.IGNORECASE)
"""Words in wgpu's messages about a lost device.

Each form has a space, so that no name of a kernel or tensor in a message matches.
"""

_FULL = re.compile(r"not enough memory|out of memory", re.IGNORECASE)
"""Words in wgpu's messages about memory, which a GPUValidationError may have as well."""


def translate(error: Exception, aim: str) -> Error:
    """Return our error for an exception of wgpu; `aim` names what failed: 'to run the kernel'.

    Our own errors, and exceptions that can't be wgpu's, are raised again unchanged: a signal's
    handler may raise anything.
    """
    kind = type(error)
    of_wgpu = kind in _RAISED_BY_WGPU or kind.__module__.partition(".")[0] == "wgpu"
    if not of_wgpu:
        raise error
    text = str(error)
    if _LOST.search(text):
        return DeviceLost(
            f"The device is lost; it was {aim}. Open a new context and upload again. "
            f"{text}"
        )
    if kind.__name__ == "GPUOutOfMemoryError" or _FULL.search(text):
        return OutOfMemoryError(
            f"The device has too little memory {aim}. Drop tensors, or work on smaller "
            f"ones; other programs may use it, too. {text}"
        )
    return ValidationError(f"The adapter refused {aim}: {text}")
