"""A device whose storage buffers lie between guard zones, to find accesses out of bounds.

Each buffer that the runtime asks for becomes the middle of a larger one that is full of
a pattern:

    whole buffer  │ zone: 4 KiB │ elements │ padding, zone: 128 KiB │
    binding                     ├───────────────────────────────────┤

A binding starts where the runtime puts it, but ends only with the zone behind: an adapter
that checks bounds would hide an access beyond the usual end.  Outputs, temporaries and
scratch are guarded like arguments, and up to the last element.  Shaders have no runtime
checks either, as by `open(unchecked=True)`, where the version of wgpu is one that can
leave them out.

- A store outside changes the pattern: `Guarded.fault` finds it.
- A load from outside that matters gives other bits under another pattern: `PATTERNS`.
- Workgroup memory is full of the first pattern when a shader begins: `unset.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime.device.gpu import (
    COPY_DST,
    COPY_SRC,
    STORAGE,
    Descriptor,
    GPUDevice,
)
from kerngen.runtime.device.native import MakeModule, unchecked_modules
from kerngen.runtime.device.storage import Allocation, Lease
from kerngen.runtime.values.shapes import round_up
from kerngen.verify.unset import with_unset_memory

BEFORE: Final = 4096
"""Bytes of the zone before a buffer: a multiple of every alignment of a binding."""

BEHIND: Final = 1 << 17
"""Bytes of the zone behind: more than a tile reaches over, at the sizes that are drawn."""


@final
@dataclass(frozen=True)
class GuardFill:
    """The fill of guard zones: a 32-bit word, and its increment from buffer to buffer."""

    name: str
    word: int
    step: int = 0

    def of(self, number: int) -> int:
        """Return the fill word of buffer `number`."""
        return self.word + self.step * number


PATTERNS: Final = (
    GuardFill("not a number", 0x7FC12300, step=1),
    GuardFill("infinity", 0x7F800000),
    GuardFill("minus infinity", 0xFF800000),
    GuardFill("some number", 0x40490FDB, step=0x10000),
    GuardFill("one as an integer", 1),
)
"""Words for guard zones: no sum, product, maximum or comparison can ignore all of them.

Two of them differ by buffer: else a faulty copy from one zone to another would not show.
"""


@final
class GuardedBuffer:
    """A buffer of `size` bytes within a larger one, `whole`.

    `word` is what its zones are full of; `filled` is how many bytes the host has uploaded
    or copied, from the start.
    """

    def __init__(self, device: GPUDevice, size: int, usage: int, word: int) -> None:
        """Create the larger buffer and fill it."""
        self.size = size
        self.usage = usage
        self.word = word
        self.filled = 0
        self.whole = device.create_buffer(size=BEFORE + size + BEHIND, usage=usage)
        words = np.full(self.whole.size // 4, word, np.uint32)
        device.queue.write_buffer(self.whole, 0, words)

    @property
    def map_state(self) -> str:
        """The state of mapping: always 'unmapped'."""
        return "unmapped"

    def binding(self, offset: int) -> Descriptor:
        """Return the binding of a range from `offset` on, up to the end of the zone."""
        start = BEFORE + offset
        size = self.whole.size - start
        return {"buffer": self.whole, "offset": start, "size": size}


@final
class _Queue:
    """The device's queue, for guarded buffers too."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def submit(self, command_buffers: Sequence[Any]) -> None:
        self._queue.submit(command_buffers)

    def write_buffer(self, buffer: Any, offset: int, data: Any) -> None:
        if isinstance(buffer, GuardedBuffer):
            buffer.filled = max(buffer.filled, offset + len(data))
        self._queue.write_buffer(*_within(buffer, offset), data)


@final
class _Encoder:
    """A command encoder, for guarded buffers too."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def begin_compute_pass(self) -> Any:
        return self._encoder.begin_compute_pass()

    def copy_buffer_to_buffer(
        self, source: Any, start: int, target: Any, offset: int, size: int
    ) -> None:
        if isinstance(target, GuardedBuffer):
            target.filled = max(target.filled, offset + size)
        self._encoder.copy_buffer_to_buffer(
            *_within(source, start), *_within(target, offset), size
        )

    def clear_buffer(self, buffer: Any, offset: int, size: int) -> None:
        if isinstance(buffer, GuardedBuffer):
            buffer.filled = max(buffer.filled, offset + size)
        self._encoder.clear_buffer(*_within(buffer, offset), size)

    def finish(self) -> Any:
        return self._encoder.finish()


def _within(buffer: Any, offset: int) -> tuple[Any, int]:
    """The buffer and the offset that the device knows."""
    if isinstance(buffer, GuardedBuffer):
        return buffer.whole, BEFORE + offset
    return buffer, offset


@final
class GuardedDevice:
    """A device that puts every storage buffer between guard zones."""

    def __init__(self, device: GPUDevice) -> None:
        """Wrap a device of wgpu; where its version can, shaders are left unchecked."""
        self.pattern = PATTERNS[0]
        self._created = 0
        self.adapter = device.adapter
        self.limits = device.limits
        self.features = device.features
        self.queue = _Queue(device.queue)
        make = unchecked_modules(device)
        self._make_module: MakeModule = (
            device.create_shader_module if isinstance(make, str) else make
        )
        self.create_bind_group_layout = device.create_bind_group_layout
        self.create_pipeline_layout = device.create_pipeline_layout
        self.create_compute_pipeline = device.create_compute_pipeline
        self._device = device

    def destroy(self) -> None:
        """Free the device and everything on it."""
        self._device.destroy()

    def start(self, pattern: GuardFill) -> None:
        """Use this pattern from now on, and number buffers anew."""
        self.pattern = pattern
        self._created = 0

    def create_shader_module(self, *, label: str, code: str) -> Any:
        """Compile a shader that finds a pattern in workgroup memory."""
        unset = with_unset_memory(code, PATTERNS[0].word)
        return self._make_module(label=label, code=unset)

    def create_buffer(self, *, size: int, usage: int) -> Any:
        """Create a buffer, between guard zones if shaders may write it."""
        if usage & STORAGE:
            word = self.pattern.of(self._created)
            self._created += 1
            return GuardedBuffer(self._device, size, usage, word)
        return self._device.create_buffer(size=size, usage=usage)

    def create_bind_group(
        self, *, label: str, layout: object, entries: Sequence[Mapping[str, Any]]
    ) -> Any:
        """Bind buffers, guarded ones with the zone behind them."""
        own = [{**entry, "resource": _exposed(entry["resource"])} for entry in entries]
        return self._device.create_bind_group(label=label, layout=layout, entries=own)

    def create_command_encoder(self) -> _Encoder:
        """Create an encoder."""
        return _Encoder(self._device.create_command_encoder())

    def read(self, buffers: Sequence[GuardedBuffer]) -> list[NDArray[np.uint8]]:
        """Return the bytes of buffers with their zones, by one transfer."""
        ends = list(accumulate(buffer.whole.size for buffer in buffers))
        joined = self._device.create_buffer(size=ends[-1], usage=COPY_SRC | COPY_DST)
        encoder = self._device.create_command_encoder()
        for buffer, end in zip(buffers, ends, strict=True):
            size = buffer.whole.size
            encoder.copy_buffer_to_buffer(buffer.whole, 0, joined, end - size, size)
        self._device.queue.submit([encoder.finish()])
        data = np.frombuffer(self._device.queue.read_buffer(joined), np.uint8)
        return np.split(data, ends[:-1])


def _exposed(resource: Mapping[str, Any]) -> Descriptor:
    buffer = resource["buffer"]
    if isinstance(buffer, GuardedBuffer):
        return buffer.binding(resource["offset"])
    return resource


@final
@dataclass(frozen=True)
class Leased:
    """A buffer that the runtime uses for `nbytes` bytes of elements."""

    nbytes: int
    buffer: GuardedBuffer

    def fault(self, found: NDArray[np.uint8], *, by_words: bool) -> str:
        """Return which byte of the zones has changed first, or "" if none has.

        With `by_words`, the last word may end in zeros: five elements of `i8` are
        written as two words, whose last three bytes are 0.
        """
        intact = np.full(found.size // 4, self.buffer.word, np.uint32)
        same = found == intact.view(np.uint8)
        # Uploads and copies are in words: the last one may go beyond the last half.
        stop = BEFORE + max(
            self.nbytes, min(self.buffer.filled, round_up(self.nbytes, 4))
        )
        same[BEFORE:stop] = True
        rest = slice(BEFORE + self.nbytes, BEFORE + round_up(self.nbytes, 4))
        if by_words and not found[rest].any():
            same[rest] = True
        if same.all():
            return ""
        at = int(np.argmin(same)) - BEFORE
        return f"something wrote at byte {at} of a buffer of {self.nbytes}"


@final
class Guarded:
    """A context on a guarded device, and the buffers of its last run."""

    def __init__(self, device: GPUDevice) -> None:
        """Open a context; `device` needs no other user."""
        self._open(device)

    def _open(self, device: GPUDevice) -> None:
        self.lost = False
        self.device = GuardedDevice(device)
        self.ctx = gpu.open(device=self.device)
        # No buffer is used twice, so every one starts out full of the pattern.
        self.ctx.limits.pooled_bytes = 0
        self.leased: list[Leased] = []
        self._device = device

    def renew(self) -> None:
        """Open a new device on the adapter if this one was lost."""
        if self.lost:
            self._open(_another(self._device))

    def close(self) -> None:
        """Destroy the device."""
        self.device.destroy()

    @contextmanager
    def under(self, pattern: GuardFill) -> Generator[None]:
        """Use this pattern in a block, and record every buffer that it leases.

        At its end all recorded work is submitted. To read an empty result submits
        nothing, and the block's stores would then run in a later block.
        """
        # Temporaries are lent by the memory of the backend alone, so both of its methods
        # are replaced for the block.
        backend: Any = self.ctx.backend
        memory = backend._memory  # noqa: SLF001 - temporaries are lent there alone
        originals = lease, borrow = memory.lease_room, memory.borrow

        def leasing(nbytes: int, capacity: int) -> Lease[Any]:
            leased: Lease[Any] = lease(nbytes, capacity)
            self.leased.append(Leased(nbytes, leased.block.memory))
            return leased

        def borrowing(nbytes: int, capacity: int) -> Allocation[Any]:
            block: Allocation[Any] = borrow(nbytes, capacity)
            self.leased.append(Leased(nbytes, block.memory))
            return block

        self.leased.clear()
        self.device.start(pattern)
        memory.lease_room, memory.borrow = leasing, borrowing
        try:
            yield
            self.ctx.submit()
        finally:
            memory.lease_room, memory.borrow = originals

    def fault(self, *, by_words: bool = False) -> str:
        """Return which zone of the last block has changed, or "" if none has.

        `by_words` is for kernels that write narrow integers.
        """
        if not self.leased:
            return ""
        found = self.device.read([leased.buffer for leased in self.leased])
        pairs = zip(self.leased, found, strict=True)
        faults = (each.fault(data, by_words=by_words) for each, data in pairs)
        return next(filter(None, faults), "")

    def check(self, what: str) -> None:
        """Raise WrongError if any zone of the last block has changed."""
        fault = self.fault()
        if fault:
            raise AssertionError(f"{what}: {fault}")


@contextmanager
def guarded(adapter: str | int | None = None) -> Generator[Guarded]:
    """Open a context with guard zones; `adapter` is as for `kerngen.runtime.open`.

    Raises the errors of `open`, as NoAdapter where there is no such adapter.
    """
    with gpu.open(adapter=adapter) as ctx:
        held = Guarded(_another(ctx.device))
        try:
            yield held
        finally:
            held.close()


def _another(device: GPUDevice) -> GPUDevice:
    """Return another device of the same adapter."""
    features = [*device.features]
    return device.adapter.request_device_sync(required_features=features)
