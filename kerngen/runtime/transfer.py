"""Copies between host and device, in program order with recorded work.

The device copies words of 4 bytes.  Only a view of 16-bit elements can start or end in
the middle of one; such a range is read and written with its neighbours, on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from kerngen.runtime.backend import AnyTensor, Bytes
from kerngen.runtime.counters import Counters
from kerngen.runtime.gpu import Buffer, Device, Promise, translate
from kerngen.runtime.memory import Memory
from kerngen.runtime.native import wait
from kerngen.runtime.recorder import Recording
from kerngen.runtime.shapes import round_up
from kerngen.runtime.storage import Block, Lease


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """A read back under way: a mapping, its buffer, and the bytes wanted of it."""

    block: Block[Buffer]
    promise: Promise
    mapped: int
    skip: int
    nbytes: int

    def finish(self) -> Bytes:
        """Return the bytes, once the promise is kept."""
        memory = self.block.memory
        view = memory.read_mapped(0, self.mapped, copy=False)
        stop = self.skip + self.nbytes
        data = np.frombuffer(view, np.uint8)[self.skip : stop].copy()
        memory.unmap()
        return data


@final
class Transfers:
    """Uploads, reads and copies; needs the context's lock throughout."""

    def __init__(
        self, device: Device, memory: Memory, recorder: Recording, counters: Counters
    ) -> None:
        """Work on a device's memory."""
        self._device = device
        self._queue = device.queue
        self._memory = memory
        self._recorder = recorder
        self._counters = counters

    def upload(self, lease: Lease[Buffer], offset: int, data: Bytes) -> None:
        """Write bytes at an offset of a lease."""
        if not _covers_words(lease, offset, data.nbytes):
            offset, data = self._with_neighbours(lease, offset, data)
        elif data.nbytes % 4:
            data = np.concatenate([data, np.zeros(-data.nbytes % 4, np.uint8)])
        self._counters.uploads += 1
        block = lease.block
        if not self._recorder.has(block):
            self._write(block, offset, data)
            block.writes += 1
            return
        # The queue would write before the recorded work runs, so copy from staging.
        staged = self._recorder.stage(data.nbytes)
        self._write(staged, 0, data)
        self._recorder.copy(staged, 0, block, offset, data.nbytes)
        self._recorder.relieve()

    def begin_read(self, lease: Lease[Buffer], offset: int, nbytes: int) -> Reading:
        """Submit what is recorded and begin to read a range."""
        self._recorder.check_allows("a read")
        start, stop = offset - offset % 4, round_up(offset + nbytes, 4)
        block = self._memory.readbacks.acquire(stop - start)
        recorder = self._recorder
        try:
            recorder.copy(lease.block, start, block, 0, stop - start)
            recorder.submit()
            # wgpu-py's "READ" would submit an empty encoder first; ours has just run.
            promise = block.memory.map_async("READ_NOSYNC", 0, stop - start)
        except Exception as error:
            self._memory.readbacks.discard(block)
            raise translate(error, "to read a tensor") from error
        self._counters.readbacks += 1
        return Reading(block, promise, stop - start, offset - start, nbytes)

    def end_read(self, reading: Reading) -> None:
        """Take the staging buffer of a read back."""
        self._memory.readbacks.release(reading.block)

    def read(self, lease: Lease[Buffer], offset: int, nbytes: int) -> Bytes:
        """Return a range, waiting for it."""
        reading = self.begin_read(lease, offset, nbytes)
        wait(self._device, reading.promise)
        data = reading.finish()
        self.end_read(reading)
        return data

    def copy(self, source: AnyTensor, target: AnyTensor) -> None:
        """Copy the elements of a tensor to another, as if through a temporary."""
        nbytes = target.nbytes
        origin: Lease[Buffer] = source.lease
        goal: Lease[Buffer] = target.lease
        if nbytes == 0 or source.binding[:2] == target.binding[:2]:
            return
        if source.offset % 4 or not _covers_words(goal, target.offset, nbytes):
            data = self.read(origin, source.offset, nbytes)
            self.upload(goal, target.offset, data)
            return
        words = round_up(nbytes, 4)
        start, block = source.offset, origin.block
        if block is goal.block:
            # A copy within one buffer is not allowed.
            between = self._memory.lease(words)
            self._recorder.copy(block, start, between.block, 0, words)
            start, block = 0, between.block
        self._recorder.copy(block, start, goal.block, target.offset, words)
        self._recorder.relieve()

    def clear(self, lease: Lease[Buffer], offset: int, nbytes: int) -> None:
        """Fill a range of a lease with zeros."""
        if not _covers_words(lease, offset, nbytes):
            self.upload(lease, offset, np.zeros(nbytes, np.uint8))
        elif nbytes:
            self._recorder.clear(lease.block, offset, round_up(nbytes, 4))
            self._recorder.relieve()

    def _with_neighbours(
        self, lease: Lease[Buffer], offset: int, data: Bytes
    ) -> tuple[int, Bytes]:
        start, stop = offset - offset % 4, round_up(offset + data.nbytes, 4)
        words = self.read(lease, start, stop - start)
        words[offset - start : offset - start + data.nbytes] = data
        return start, words

    def _write(self, block: Block[Buffer], offset: int, data: Bytes) -> None:
        try:
            self._queue.write_buffer(block.memory, offset, data)
        except Exception as error:
            raise translate(error, "to write a tensor") from error


def _covers_words(lease: Lease[Buffer], offset: int, nbytes: int) -> bool:
    """Return whether a range may be written in words of 4 bytes."""
    if offset % 4:
        return False
    return nbytes % 4 == 0 or (lease.padded and offset + nbytes == lease.nbytes)
