"""The uniform arena: the uniform structs of recorded calls, in chunks of fixed size.

Calls have their structs one behind the other, each at a multiple of the adapter's alignment.
A bind group binds the chunk once, and a call passes the offset of its own struct:

    chunk:    | relu's, 16 bytes | pad | sum's | pad |   free    |
    offset:   0                        256           512 = used
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from kerngen.runtime.device.gpu import Buffer, Queue
from kerngen.runtime.device.storage import Allocation

CHUNK_BYTES = 256 * 1024
"""The size of a chunk.

Chunks never grow, so that bind groups of them stay valid.
"""


@final
class Chunk:
    """A buffer of uniform structs, and `data`, the bytes that will be uploaded to it."""

    __slots__ = ("_uploaded", "block", "data", "used")

    def __init__(self, block: Allocation[Buffer]) -> None:
        """Start empty."""
        self.block = block
        self.data = bytearray(CHUNK_BYTES)
        self.used = 0
        self._uploaded = bytearray()
        """The bytes that the device has from earlier submissions."""

    def upload(self, queue: Queue) -> None:
        """Copy `data` to the device, unless it has these bytes from an earlier submission.

        So a step that is repeated with the same scalars uploads nothing; for each upload wgpu
        makes a staging buffer.
        """
        used = memoryview(self.data)[: self.used]
        if self._uploaded.startswith(used):
            return
        self.invalidate()  # an interrupt may end the write at any point
        queue.write_buffer(self.block.memory, 0, used)
        self._uploaded += used

    def invalidate(self) -> None:
        """Forget which bytes the device has, so that the next upload copies all of them."""
        self._uploaded.clear()


@final
class UniformArena:
    """Memory for the uniform structs of recorded calls, each addressed by a dynamic offset.

    Chunks are filled in order, and each is uploaded once per submission.  After a submission
    the arena starts over with the first chunk: the queue keeps uploads in order, so that the
    submitted work has read the old contents.
    """

    def __init__(self, create: Callable[[int], Allocation[Buffer]]) -> None:
        """Start without chunks; `create` makes the buffer of one."""
        self._create = create
        self._chunks: list[Chunk] = []
        self._current = -1

    def room(self, nbytes: int) -> Chunk:
        """Return a chunk with room for `nbytes` at offset `chunk.used`.

        The caller packs a struct there, and then increases `used`.
        """
        if self._current >= 0:
            # The rest of a chunk is given up without a search for gaps in earlier ones: a
            # struct takes a few hundred of its 262,144 bytes.
            chunk = self._chunks[self._current]
            if chunk.used + nbytes <= CHUNK_BYTES:
                return chunk
        if self._current + 1 == len(self._chunks):
            self._chunks.append(Chunk(self._create(CHUNK_BYTES)))
        self._current += 1
        return self._chunks[self._current]

    def upload(self, queue: Queue) -> None:
        """Copy the structs packed so far to the device, ahead of a submission."""
        for chunk in self._chunks[: self._current + 1]:
            chunk.upload(queue)

    def reset(self) -> None:
        """Begin again with the first chunk, as after a submission."""
        for chunk in self._chunks[: self._current + 1]:
            chunk.used = 0
        self._current = -1

    def invalidate(self) -> None:
        """Forget what the device has of each chunk, as after a submission that failed."""
        for chunk in self._chunks:
            chunk.invalidate()

    def clear(self) -> None:
        """Drop all chunks."""
        self._chunks.clear()
        self._current = -1
