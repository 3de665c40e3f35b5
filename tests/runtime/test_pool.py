"""How much free memory a pool keeps: sizes are numbers here, no memory is allocated."""

from __future__ import annotations

from itertools import count

from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.pool import Pool
from kerngen.runtime.device.storage import Allocation

GIB = 1 << 30


class Counting:
    """A pool of sizes, and those that it frees."""

    def __init__(self, limit: int | None = None) -> None:
        self.freed: list[int] = []
        self.pool: Pool[int] = Pool(
            "storage",
            numbers=count(),
            create=lambda capacity: capacity,
            destroy=lambda block: self.freed.append(block.capacity),
            limits=Limits(pooled_bytes=limit),
            largest=1 << 62,
        )

    def step(self, *sizes: int) -> None:
        """Use blocks of these sizes at once, and give them back."""
        blocks: list[Allocation[int]] = [self.pool.acquire(size) for size in sizes]
        for block in blocks:
            self.pool.release(block)


def test_a_repeated_step_makes_no_blocks() -> None:
    each = Counting()
    for _ in range(3):
        each.step(*[GIB] * 40)
        each.step(*[5 * GIB // 4] * 8)
    assert (each.pool.misses, each.freed) == (48, [])


def test_other_sizes_push_the_largest_free_blocks_out() -> None:
    each = Counting()
    each.step(8 * GIB, GIB, GIB)
    each.step(*[2 * GIB] * 4)  # 18 GiB in all, 13.5 are kept
    assert each.freed == [8 * GIB]
    assert each.pool.free_bytes == 10 * GIB


def test_a_limit_is_for_free_memory_alone() -> None:
    each = Counting(limit=2 * GIB)
    each.step(*[GIB] * 3)
    assert (each.pool.free_bytes, each.freed) == (2 * GIB, [GIB])


def test_a_larger_free_block_in_use_is_counted_as_large_as_it_is() -> None:
    each = Counting()
    each.step(5 * GIB // 4)
    block = each.pool.acquire(GIB)  # the free one, a quarter larger
    assert each.pool.used_bytes == block.capacity == 5 * GIB // 4
    each.pool.release(block)
    assert (each.pool.used_bytes, each.pool.free_bytes) == (0, 5 * GIB // 4)
