"""The length of several axes as one."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import final

from kerngen.ir.nodes import Extent


@final
class MergedExtent(str):
    """The length `h * w` of axes `h` and `w` as one, which is no field of the uniform struct."""

    __slots__ = ("axes",)

    axes: tuple[Extent, ...]

    def __new__(cls, axes: tuple[Extent, ...]) -> MergedExtent:
        """Name the product of the lengths of some axes."""
        self = super().__new__(cls, " * ".join(map(str, axes)))
        self.axes = axes
        return self


def merged(extents: Iterable[Extent]) -> Extent:
    """Return the length of several axes as one, a number if theirs are."""
    axes = tuple(extents)
    numbers = [extent for extent in axes if isinstance(extent, int)]
    return prod(numbers) if len(numbers) == len(axes) else MergedExtent(axes)
