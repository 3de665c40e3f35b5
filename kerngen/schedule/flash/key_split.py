"""How the keys of few queries are cut into parts, one for each of many workgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan.size import ONE, Size, ceil_div, maximum, minimum, product_of
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.flash.head_groups import HeadGroup, head_group
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.sizes import domain_size, extent_size

SIZE: Final = 128
"""Lanes of a workgroup, and the keys that it takes at a time: one for each lane."""

GROUPS: Final = 512
"""So many workgroups keep a large device busy: keys are cut up to that number."""


@final
@dataclass(frozen=True)
class KeySplit:
    """How the keys are cut into parts, for rows of heads that share them."""

    found: Attention
    columns: int

    @property
    def heads(self) -> HeadGroup | None:
        """The group of heads whose queries read the same keys, if there is one."""
        return head_group(self.found)

    @property
    def outer(self) -> tuple[Index, ...]:
        """The batch indices: for each of their values, queries have other keys."""
        heads = self.heads
        own = None if heads is None else heads.index
        return tuple(index for index in self.found.batch if index != own)

    @property
    def rows(self) -> Size:
        """How many rows read the same keys."""
        heads = self.heads
        return extent_size(self.found.row.extent) * (
            ONE if heads is None else heads.size
        )

    @property
    def tiles(self) -> Size:
        """The number of workgroups that share one part of the keys."""
        heads, columns = self.heads, extent_size(self.found.column.extent)
        count = ONE if heads is None else heads.count
        row_tiles, column_tiles = ceil_div(self.rows, VECTOR), ceil_div(
            columns, self.columns
        )
        return product_of((domain_size(self.outer), count, row_tiles, column_tiles))

    @property
    def parts(self) -> Size:
        """The number of parts: enough for a device, with at least 128 keys each."""
        fill = ceil_div(GROUPS, maximum(self.tiles, 1))
        keys = ceil_div(extent_size(self.found.key.extent), SIZE)
        return maximum(minimum(fill, keys), 1)
