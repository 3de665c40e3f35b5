"""Blocks of memory, and the leases by which tensors share them.

A block is one buffer.  A tensor and its views hold one lease of it:

    t = ctx.zeros(8, f32)     t ----+
    v = t[2:5]                v ----+--> Lease --> Allocation --> wgpu's buffer

When the last of them is gone, the lease hands the block back to the pool.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeAlias, TypeVar, final

T = TypeVar("T")


@final
class Allocation(Generic[T]):
    """One buffer of a context, a block: `memory` of `capacity` bytes.

    `uid` numbers the blocks of a context in the order of their creation.  `used_in` is
    the number of the recording that last used the block.  `writes` counts the calls that
    wrote it, `losses` the recordings with such calls that an error ended.  A block that
    has `escaped` to a caller, or came from one, never enters the pool.
    """

    __slots__ = (
        "__weakref__",
        "capacity",
        "escaped",
        "losses",
        "memory",
        "uid",
        "used_in",
        "writes",
    )

    def __init__(
        self, uid: int, memory: T, capacity: int, *, escaped: bool = False
    ) -> None:
        """Number a buffer."""
        self.uid = uid
        self.memory = memory
        self.capacity = capacity
        self.escaped = escaped
        self.used_in = -1
        self.writes = 0
        self.losses = 0


Returned: TypeAlias = "deque[Allocation[T]]"
"""Blocks whose last tensor is gone; filled from any thread, emptied by the pool."""


@final
class Lease(Generic[T]):
    """The right to `nbytes` of a block; it ends with the last tensor that holds the lease.

    `__del__` runs whenever Python drops the object: in any thread, and even in the middle
    of the pool's own work.  So it takes no lock, and only appends to a queue.
    """

    __slots__ = ("block", "nbytes", "padded", "returned")

    def __init__(
        self,
        block: Allocation[T],
        nbytes: int,
        returned: Returned[T],
        *,
        padded: bool = True,
    ) -> None:
        """Lease a block; `padded` if it is ours up to a multiple of 16 bytes.

        Nearly all leases are, so that is the default: to pass the keyword would add 0.15 us,
        half of what a lease takes.
        """
        self.block = block
        self.nbytes = nbytes
        self.returned = returned
        self.padded = padded

    def __del__(self) -> None:
        """Hand the block back."""
        self.returned.append(self.block)
