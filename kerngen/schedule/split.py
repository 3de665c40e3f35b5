"""How a reduction is cut into parts, one for each of several workgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.plan.size import Operand, Size, ceil_div, maximum, minimum
from kerngen.schedule.sizes import domain_size


@final
@dataclass(frozen=True, slots=True)
class Split:
    """Parts of a reduction over `indices`: one for every `size` terms, at most `most` parts."""

    indices: tuple[Index, ...]
    size: Operand
    most: int

    @property
    def count(self) -> Size:
        """The number of parts: at least one."""
        needed = ceil_div(domain_size(self.indices), self.size)
        return minimum(maximum(needed, 1), self.most)
