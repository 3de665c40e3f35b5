"""Grouped-query attention: several heads of queries that read the same keys and values.

Where keys and values are read at `g / (h / r)` alone, the `h / r` heads of one quotient are
rows of the same product, and what is read of keys and values serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import (
    Binary,
    Constant,
    DimValue,
    Expr,
    Index,
    IndexValue,
)
from kerngen.ir.walk import children
from kerngen.plan.size import Apply, Literal, Size, Symbol, ceil_div, maximum
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.sizes import extent_size


@final
@dataclass(frozen=True, slots=True)
class HeadGroup:
    """Groups of `size` neighbours of an index, which read the same keys and values."""

    index: Index
    size: Size

    @property
    def count(self) -> Size:
        """How many groups there are."""
        return ceil_div(extent_size(self.index.extent), self.size)


def head_group(found: Attention) -> HeadGroup | None:
    """Return the group of heads that share keys and values, or None."""
    for index in found.batch:
        uses = [*_uses(found.product.right, index), *_uses(found.value, index)]
        sizes = set(uses)
        if not uses:
            return HeadGroup(index, extent_size(index.extent))
        if len(sizes) == 1 and None not in sizes:
            (size,) = sizes
            assert size is not None, "no other use"
            return HeadGroup(index, maximum(size, 1))
    return None


def _uses(expr: Expr, index: Index) -> Iterator[Size | None]:
    """Yield the divisor of each use of an index; None for a use without one."""
    match expr:
        case IndexValue(used):
            if used == index:
                yield None
        case Binary("/", IndexValue(used), by) if used == index:
            yield _size(by)
        case _:
            for child in children(expr):
                yield from _uses(child, index)


def _size(expr: Expr) -> Size | None:
    """Return a divisor as a size: a dim, a number or the quotient of two."""
    match expr:
        case DimValue(name):
            return Symbol(name)
        case Constant(value):
            return Literal(int(value))
        case Binary("/", left, right):
            sides = _size(left), _size(right)
            if None in sides:
                return None
            return Apply("/", tuple(side for side in sides if side is not None))
        case _:
            return None
