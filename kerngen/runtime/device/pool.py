"""The pool: free buffers by size class, handed out again lowest number first.

The order matters: a step that is repeated gets the same buffers each time, and so finds
its bind groups in their cache.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar, final

from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.storage import Allocation

T = TypeVar("T")

SMALLEST = 256
"""The smallest capacity of a buffer in bytes."""

LEAST_KEPT = 1 << 30
"""Bytes that a pool without a limit keeps beside its peak and a quarter of that.

A repeated step then makes no buffers.  With 8 GiB as the limit, a training step whose
activations take more freed and made them for each batch: 0.12 s to free them on an H200.
"""

LARGE = 8 << 20
"""Bytes from which on size classes are finer: 64 to a power of two, and not four.

The waste of a large buffer weighs more than how often its class is met again: the weights of
a model of 8.8 GB took 226 MB more in classes of a quarter.
"""


def size_class(nbytes: int) -> int:
    """Return the capacity of the block for `nbytes`: four capacities to each power of two.

    Between 256 and 1,024 bytes they are 320, 384, 448, 512, 640, 768, 896 and 1,024.  At
    most a quarter of the size is wasted, of a large one at most 1/64.
    """
    if nbytes <= SMALLEST:
        return SMALLEST
    # A size above 2^k, up to 2^(k + 1), is rounded up to a multiple of 2^k / 4, or / 64.
    step = 1 << ((nbytes - 1).bit_length() - (3 if nbytes <= LARGE else 7))
    return -(-nbytes // step) * step


@final
class Pool(Generic[T]):
    """A pool of buffers of one usage; `create` makes a buffer, `destroy` frees one.

    Leases append to `returned` in any thread; for all else the caller holds the context's lock.
    The pool holds on to all its blocks, those in use, too: were they reachable from their
    tensors alone, the cyclic garbage collector would finalise the buffers along with the lease
    that hands them back.
    """

    def __init__(
        self,
        name: str,
        *,
        numbers: count[int],
        create: Callable[[int], T],
        destroy: Callable[[Allocation[T]], None],
        limits: Limits,
        largest: int,
    ) -> None:
        """Start empty; `numbers` yields the uids, `largest` bounds the capacity."""
        self.name = name
        self.returned: deque[Allocation[T]] = deque()
        self.free_bytes = 0
        self.used_bytes = 0
        self.peak_bytes = 0
        """The most that was in use at once."""
        self.hits = 0
        self.misses = 0
        self._numbers = numbers
        self._create = create
        self._destroy = destroy
        self._limits = limits
        self._largest = largest
        self._blocks: dict[int, Allocation[T]] = {}
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        """The numbers of the free blocks by capacity: heaps, the lowest number first."""

    def acquire(self, nbytes: int) -> Allocation[T]:
        """Return a block of at least `nbytes`."""
        return self.take(self.capacity_for(nbytes))

    def capacity_for(self, nbytes: int) -> int:
        """Return the capacity of the block that `take` should return for `nbytes`."""
        return min(size_class(nbytes), self._largest)

    def take(self, capacity: int) -> Allocation[T]:
        """Return a block for `capacity`, which `capacity_for` returned: a free or a new one.

        If `capacity` is large, a free block may be larger by up to a quarter.
        """
        if self.returned:
            self.collect()
        # Exact classes first; `_near` looks through all classes, for large blocks alone.
        free = self._free.get(capacity) or self._near(capacity)
        if free:
            self.hits += 1
            # The lowest number: a repeated step gets the blocks of the last time, and so
            # finds its bind groups.
            block = self._blocks[heappop(free)]
            self.free_bytes -= block.capacity
        else:
            block = self._make(capacity)
        used = self.used_bytes = self.used_bytes + block.capacity
        if used > self.peak_bytes:  # noqa: PLR1730 - `max` would take 0.1 us
            self.peak_bytes = used
        return block

    def _make(self, capacity: int) -> Allocation[T]:
        """Create a block; free ones are given up first if both would be too much."""
        self.misses += 1
        self._evict(self.used_bytes + capacity)
        block = Allocation(next(self._numbers), self._create(capacity), capacity)
        self._blocks[block.uid] = block
        return block

    def _near(self, capacity: int) -> list[int] | None:
        """Return free blocks that are larger than a large one needs, by a quarter at most."""
        if capacity <= LARGE:
            return None
        most = capacity + capacity // 4
        found = (c for c, free in self._free.items() if free and capacity < c <= most)
        return self._free.get(min(found, default=0))

    def release(self, block: Allocation[T]) -> None:
        """Take a block back into the pool; if a caller shares its buffer, drop the block."""
        if block.escaped:
            self.discard(block)
            return
        capacity = block.capacity
        self.used_bytes -= capacity
        self.free_bytes += capacity
        heappush(self._free[capacity], block.uid)
        # Without a limit, `_evict` keeps LEAST_KEPT at least: below, it need not be asked.
        if self.free_bytes > LEAST_KEPT or self._limits.pooled_bytes is not None:
            self._evict(self.used_bytes)

    def discard(self, block: Allocation[T]) -> None:
        """Free a block that must not be used again."""
        if self._blocks.pop(block.uid, None) is not None:  # it may be a caller's
            self.used_bytes -= block.capacity
        self._destroy(block)

    def _evict(self, used: int) -> None:
        """Free the largest blocks, as long as more is free than may be beside `used`.

        Without a limit, used and free bytes together may be 5/4 of the peak, and 1 GiB.
        """
        most = self._limits.pooled_bytes
        if most is None:
            peak = max(self.peak_bytes, used)
            most = peak + peak // 4 + LEAST_KEPT - used
        while self.free_bytes > most:
            largest = max(size for size, free in self._free.items() if free)
            self.free_bytes -= largest
            self._destroy(self._blocks.pop(heappop(self._free[largest])))

    def collect(self) -> None:
        """Take back the blocks whose leases have ended."""
        returned = self.returned
        while returned:
            self.release(returned.popleft())

    def trim(self) -> None:
        """Free every block that is not in use."""
        self.collect()
        for free in self._free.values():
            for uid in free:
                self._destroy(self._blocks.pop(uid))
        self._free.clear()
        self.free_bytes = 0

    def __repr__(self) -> str:
        """Return the name with the counts of hits and misses."""
        return f"Pool({self.name}: {self.hits} hits, {self.misses} misses)"
