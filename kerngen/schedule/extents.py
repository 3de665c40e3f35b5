"""Lengths of axes that a strategy makes of a kernel's own."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import final

from kerngen.ir.nodes import Extent


@final
class MergedExtent(str):
    """The length of several axes as one: `h * w` of axes `h` and `w`, not a field of a uniform."""

    __slots__ = ("axes",)

    axes: tuple[Extent, ...]

    def __new__(cls, axes: tuple[Extent, ...]) -> MergedExtent:
        """Name the product of the lengths of some axes."""
        self = super().__new__(cls, " * ".join(map(str, axes)))
        self.axes = axes
        return self


def merged(extents: Sequence[Extent]) -> Extent:
    """Return the length of several axes as one."""
    axes = tuple(extents)
    if all(isinstance(extent, int) for extent in axes):
        return prod(int(extent) for extent in axes)
    return MergedExtent(axes) if len(axes) > 1 else axes[0]
