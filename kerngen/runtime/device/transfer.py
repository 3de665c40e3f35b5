"""Copies between host and device, in program order with recorded work.

WebGPU copies words of 4 bytes.  A view of f16 or of narrower elements may start or end in
the middle of a word; such a range is read and written with its neighbours, on the host:

    bytes:    | 0 1 2 3 | 4 5 6 7 | 8 9 10 11 |
    f16[3]:        2 3    4 5 6 7                 at offset 2: words from 0 up to 8
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from kerngen.runtime.backend import AnyTensor, Bytes, Range
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.gpu import Buffer, Device, translate
from kerngen.runtime.device.mapping import Map, Mapping
from kerngen.runtime.device.memory import Memory
from kerngen.runtime.device.recorder import Recording
from kerngen.runtime.device.storage import Allocation, Lease
from kerngen.runtime.values.arrays import copied
from kerngen.runtime.values.shapes import round_up

PIECE: Final = 1 << 25
"""Bytes of an upload that are written at once: 32 MiB.

wgpu keeps a copy of what is written until the next submission.  With a submission after
each piece it uses the same memory again: 400 MB take 44 ms instead of 98 to an H200.
"""


@final
@dataclass(frozen=True, slots=True)
class PendingReads:
    """Reads under way: a staging buffer, its mapping, and the place of each range."""

    block: Allocation[Buffer]
    mapping: Mapping
    pieces: Sequence[tuple[int, int]]
    """The first byte and the number of bytes of each read."""

    def finish(self, into: Sequence[Bytes] = ()) -> list[Bytes]:
        """Return the bytes of each range, in the arrays `into` if given.

        The buffer must be mapped.
        """
        mapped = np.frombuffer(self.mapping.view(), np.uint8)
        found = [mapped[start : start + nbytes] for start, nbytes in self.pieces]
        data = copied(found, into)
        # No array may be left over memory that is not mapped any more.
        del mapped, found
        self.mapping.unmap()
        return data


@final
class Transfers:
    """Uploads, reads and copies; callers must hold the context's lock."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        recorder: Recording,
        counters: Counters,
        *,
        map_: Map,
    ) -> None:
        """Copy to and from `memory`; `map_` maps the staging buffers of blocking reads."""
        self._map = map_
        self._queue = device.queue
        self._memory = memory
        self._recorder = recorder
        self._counters = counters

    def upload(self, lease: Lease[Buffer], offset: int, data: Bytes) -> None:
        """Store the bytes `data` in a lease, from byte `offset` on."""
        # 1. Make whole words of them: with neighbours, or with zeros in the padding.
        if not _covers_words(lease, offset, data.nbytes):
            offset, data = self._with_neighbours(lease, offset, data)
        elif data.nbytes % 4:
            data = np.concatenate([data, np.zeros(-data.nbytes % 4, np.uint8)])
        self._counters.uploads += 1
        # 2. Write them directly, if no recorded work uses the block.
        block = lease.block
        if not self._recorder.has(block):
            self._write(block, offset, data)
            block.writes += 1
            return
        # 3. The queue would write before the recorded work runs: record a copy from staging.
        staged = self._recorder.stage(data.nbytes)
        self._write(staged, 0, data)
        self._recorder.copy(staged, 0, block, offset, data.nbytes)
        self._recorder.relieve()

    def begin_reads(
        self, ranges: Sequence[Range], map_: Map | None = None
    ) -> PendingReads:
        """Submit recorded work, and begin to read all ranges through one staging buffer."""
        recorder = self._recorder
        recorder.check_allows("a read")
        total = sum(_words(offset, nbytes)[1] for _, offset, nbytes in ranges)
        block = self._memory.readbacks.acquire(total)
        try:
            pieces = list(self._stage(ranges, block))
            recorder.submit()
            mapping = (map_ or self._map)(block.memory, total)
        except Exception as error:
            self._memory.readbacks.discard(block)
            raise translate(error, "to read a tensor") from error
        self._counters.readbacks += len(pieces)
        return PendingReads(block, mapping, pieces)

    def _stage(
        self, ranges: Sequence[Range], block: Allocation[Buffer]
    ) -> Iterator[tuple[int, int]]:
        """Record the copies to a staging buffer; yield where each read finds its bytes."""
        at = 0
        for lease, offset, nbytes in ranges:
            start, length = _words(offset, nbytes)
            self._recorder.copy(lease.block, start, block, at, length)
            yield at + offset - start, nbytes
            at += length

    def end_reads(self, reading: PendingReads) -> None:
        """Return the staging buffer of reads to its pool, once their bytes were taken."""
        self._memory.readbacks.release(reading.block)

    def read(self, lease: Lease[Buffer], offset: int, nbytes: int) -> Bytes:
        """Wait for the bytes of a range, and return them."""
        reading = self.begin_reads([(lease, offset, nbytes)])
        reading.mapping.wait()
        (data,) = reading.finish()
        self.end_reads(reading)
        return data

    def copy(self, source: AnyTensor, target: AnyTensor) -> None:
        """Copy the elements of a tensor to another; the two may overlap."""
        nbytes = target.nbytes
        origin: Lease[Buffer] = source.lease
        goal: Lease[Buffer] = target.lease
        if nbytes == 0 or source.binding[:2] == target.binding[:2]:
            return
        # Ranges that are no whole words go by way of the host.
        if source.offset % 4 or not _covers_words(goal, target.offset, nbytes):
            data = self.read(origin, source.offset, nbytes)
            self.upload(goal, target.offset, data)
            return
        words = round_up(nbytes, 4)
        start, block = source.offset, origin.block
        if block is goal.block:
            # WebGPU allows no copy within one buffer: by way of a temporary.
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
        """Return the words that hold a range, with `data` in it, and their offset."""
        start, stop = offset - offset % 4, round_up(offset + data.nbytes, 4)
        words = self.read(lease, start, stop - start)
        words[offset - start : offset - start + data.nbytes] = data
        return start, words

    def _write(self, block: Allocation[Buffer], offset: int, data: Bytes) -> None:
        """Write whole words to a block, in pieces with a submission between them."""
        try:
            for at in range(0, data.nbytes, PIECE):
                if at > 0:
                    self._queue.submit([])
                piece = data[at : at + PIECE]
                self._queue.write_buffer(block.memory, offset + at, piece)
        except Exception as error:
            raise translate(error, "to write a tensor") from error


def _words(offset: int, nbytes: int) -> tuple[int, int]:
    """Return the offset and the size of the words of 4 bytes that hold a range."""
    start = offset - offset % 4
    return start, round_up(offset + nbytes, 4) - start


def _covers_words(lease: Lease[Buffer], offset: int, nbytes: int) -> bool:
    """Return whether a range may be written in words of 4 bytes.

    The last word may be partial at the end of a padded lease: nothing is behind it.
    """
    if offset % 4:
        return False
    return nbytes % 4 == 0 or (lease.padded and offset + nbytes == lease.nbytes)
