"""How a reduction is cut into parts, for several workgroups: the shader and the host agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.task import host_product
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class Split:
    """A part for every `size` terms of some indices, but no more than `most` parts."""

    indices: tuple[Index, ...]
    size: int
    most: int

    def count(self, shader: ShaderBuilder) -> t.Expr:
        """Return how many parts there are."""
        needed = (shader.size(self.indices) + (self.size - 1)) // self.size
        return t.call("min", t.call("max", needed, 1), self.most)

    @property
    def host_count(self) -> str:
        """The Python text of it."""
        terms = host_product(self.indices)
        return f"min(max(ceil_div({terms}, {self.size}), 1), {self.most})"
