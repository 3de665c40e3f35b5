"""A device's memory: pools by usage, leases, and the caller's own buffers.

Who has a block, from its creation on:

    pool --take--> lease of a tensor, or a block lent to a call --release--> pool
                          |
                          +--hand_out--> the caller, too: it never returns to the pool
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import final
from weakref import WeakValueDictionary

from kerngen.runtime.counters import Counters
from kerngen.runtime.device import gpu
from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.pool import Pool
from kerngen.runtime.device.shaders import BindGroups
from kerngen.runtime.device.storage import Allocation, Lease
from kerngen.runtime.errors import (
    ContextError,
    DtypeError,
    LimitError,
    OutOfMemoryError,
    ShapeError,
    ValidationError,
)
from kerngen.runtime.tensor import padded_size
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.shapes import round_up


@final
class Memory:
    """The memory of a context: all its buffers; callers must hold the context's lock.

    A buffer is freed by dropping its object: the device keeps it until recorded and submitted
    work is done with it.
    """

    def __init__(
        self,
        device: gpu.Device,
        *,
        bind_groups: BindGroups,
        counters: Counters,
        limits: Limits,
        largest: int,
    ) -> None:
        """Start empty; `largest` is the adapter's limit for a buffer."""
        self._device = device
        self._bind_groups = bind_groups
        self._counters = counters
        self._limits = limits
        self._largest = largest
        self._numbers = count()
        self._foreign: WeakValueDictionary[int, Allocation[gpu.Buffer]] = (
            WeakValueDictionary()
        )
        self.kept: list[Lease[gpu.Buffer]] | None = None
        """The leases of a capture whose block is open, else None.

        The capture keeps them, as its replays use the same memory again.
        """
        self.storage = self._pool("storage", gpu.STORAGE | gpu.COPY_SRC | gpu.COPY_DST)
        self.uploads = self._pool("uploads", gpu.COPY_SRC | gpu.COPY_DST)
        self.readbacks = self._pool("readbacks", gpu.MAP_READ | gpu.COPY_DST)

    def lease(self, nbytes: int, least: int = 0) -> Lease[gpu.Buffer]:
        """Return a lease of a block for `nbytes`, padded, and with room for `least` bytes."""
        padded = padded_size(nbytes, least)
        if padded > self._largest:
            raise LimitError(
                f"A tensor of {nbytes} bytes is larger than any buffer of the adapter, "
                f"which has at most {self._largest}."
            )
        return self.lease_room(nbytes, self.storage.capacity_for(padded))

    def lease_room(self, nbytes: int, capacity: int) -> Lease[gpu.Buffer]:
        """Return a lease for `nbytes` of a block of `capacity`, as from `capacity_for`."""
        storage = self.storage
        lease = Lease(storage.take(capacity), nbytes, storage.returned)
        if self.kept is not None:
            self.kept.append(lease)
        return lease

    def borrow(self, nbytes: int, capacity: int) -> Allocation[gpu.Buffer]:
        """Return a block for the temporaries of one call; the caller must `hand_back` it.

        Later calls may be lent the same block: the device runs dispatches in order, so that
        they write it after this call has read it.
        """
        block = self.storage.take(capacity)
        if self.kept is not None:
            self.kept.append(Lease(block, nbytes, self.storage.returned))
        return block

    def hand_back(self, blocks: Iterable[Allocation[gpu.Buffer]]) -> None:
        """Return borrowed blocks to the pool, unless an open capture keeps them.

        Call it after every command that uses them is recorded.
        """
        if self.kept is None:
            for block in blocks:
                self.storage.release(block)

    def wrap(
        self, buffer: gpu.GPUBuffer, offset: int, nbytes: int
    ) -> Lease[gpu.Buffer]:
        """Return a lease of a caller's buffer after checking device, usage and range."""
        self._check_foreign(buffer, offset + nbytes)
        return self.lease_foreign(buffer, nbytes)

    def lease_foreign(self, buffer: gpu.GPUBuffer, nbytes: int) -> Lease[gpu.Buffer]:
        """Return a lease of a caller's buffer, unchecked."""
        # A program that only wraps buffers takes no block, and `take` is what collects.
        self.storage.collect()
        block = self._foreign.get(id(buffer))
        if block is None:
            block = Allocation(next(self._numbers), buffer, buffer.size, escaped=True)
            self._foreign[id(buffer)] = block
        return Lease(block, nbytes, self.storage.returned, padded=False)

    def hand_out(self, lease: Lease[gpu.Buffer]) -> gpu.GPUBuffer:
        """Return the buffer of a lease to the caller, who shares it from now on.

        The buffer is noted as foreign, so that `wrap` of the same buffer finds the same block,
        and overlaps with the tensor are noticed.
        """
        block = lease.block
        block.escaped = True
        self._foreign[id(block.memory)] = block
        return block.memory

    def uniform_chunk(self, nbytes: int) -> Allocation[gpu.Buffer]:
        """Return a buffer for uniform structs."""
        memory = self._create(nbytes, gpu.UNIFORM | gpu.COPY_DST)
        return Allocation(next(self._numbers), memory, nbytes)

    def trim(self) -> None:
        """Free all memory that no tensor uses."""
        for pool in (self.storage, self.uploads, self.readbacks):
            pool.trim()

    def _pool(self, name: str, usage: int) -> Pool[gpu.Buffer]:
        """Return a pool of buffers with a usage: WebGPU fixes it when one is created."""

        def create(nbytes: int) -> gpu.Buffer:
            return self._create(nbytes, usage)

        return Pool(
            name,
            numbers=self._numbers,
            create=create,
            destroy=self._forget,
            limits=self._limits,
            largest=self._largest,
        )

    def _forget(self, block: Allocation[gpu.Buffer]) -> None:
        """Free a block: with its bind groups goes the last reference to its buffer."""
        self._bind_groups.forget(block.uid)

    def _create(self, nbytes: int, usage: int) -> gpu.Buffer:
        """Create a buffer; if memory is short, free what the pools keep, and try again."""
        try:
            return self._try_create(nbytes, usage)
        except OutOfMemoryError:
            self.trim()
            return self._try_create(nbytes, usage)

    def _try_create(self, nbytes: int, usage: int) -> gpu.Buffer:
        try:
            buffer = self._device.create_buffer(size=nbytes, usage=usage)
        except Exception as error:
            raise gpu.translate(
                error, f"to create a buffer of {nbytes} bytes"
            ) from error
        self._counters.buffers_created += 1
        return buffer

    def _check_foreign(self, buffer: gpu.GPUBuffer, end: int) -> None:
        # By attributes, not by class: wgpu's buffers have a class for each backend.
        if not (hasattr(buffer, "usage") and hasattr(buffer, "map_state")):
            raise DtypeError(f"wrap: expected a wgpu.GPUBuffer, got {kind_of(buffer)}.")
        if getattr(buffer, "_device", self._device) is not self._device:
            raise ContextError("wrap: the buffer belongs to another device.")
        if not buffer.usage & gpu.STORAGE:
            raise ValidationError("wrap: the buffer lacks the usage STORAGE.")
        if round_up(end, 4) > buffer.size:
            raise ShapeError(
                f"wrap: the tensor ends at byte {end} (in words of 4 bytes), the buffer "
                f"at byte {buffer.size}."
            )
