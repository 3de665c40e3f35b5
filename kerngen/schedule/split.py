"""How a reduction is cut into parts, for several workgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.plan.size import Size, ceil_div, maximum, minimum
from kerngen.schedule.sizes import domain_size


@final
@dataclass(frozen=True, slots=True)
class Split:
    """A part for every `size` terms of some indices, but no more than `most` parts."""

    indices: tuple[Index, ...]
    size: int
    most: int

    @property
    def count(self) -> Size:
        """How many parts there are: at least one."""
        needed = ceil_div(domain_size(self.indices), self.size)
        return minimum(maximum(needed, 1), self.most)
