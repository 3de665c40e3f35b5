"""Shader values: one element wide, or four."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.shader import tree as t

LANES: Final = 4
"""The elements that a wide value has: a `vec4`, the longest vector of WGSL."""

COMPONENTS: Final = "xyzw"
"""The components of a `vec4`."""


@final
@dataclass(frozen=True, slots=True)
class Value:
    """A WGSL expression of one element's value; of the values of four elements if `wide`."""

    expr: t.Expr
    wide: bool = False

    @property
    def lanes(self) -> int:
        """The number of elements: 1 or 4."""
        return LANES if self.wide else 1

    def lane(self, component: str) -> t.Expr:
        """Return the value of one element, `component` (`x` to `w`) of a wide value.

        The wide value must be a name; a narrow value is the same for all four elements.
        """
        return t.Member(self.expr, component) if self.wide else self.expr
