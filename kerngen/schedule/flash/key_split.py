"""How the keys of few queries are cut into parts, one for each of many workgroups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Binary, Constant, DimValue, Expr, Index, IndexValue
from kerngen.ir.walk import children
from kerngen.plan.size import (
    ONE,
    Literal,
    Size,
    Symbol,
    ceil_div,
    maximum,
    minimum,
    product_of,
    quotient,
)
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.sizes import domain_size, extent_size

SIZE: Final = 128
"""Lanes of a workgroup."""

KEYS: Final = 64
"""The keys that it takes at a time.

With 128, a lane's values would not fit its registers.  On an H200, 32 heads that share 8 heads
of keys, 128 numbers each, take 10.2 us with 1,024 keys, 16.0 with 4,096 and 38.7 with 16,384;
with 32 keys at a time in twice as many workgroups 10.0, 20.3 and 45.9.
"""

GROUPS: Final = 512
"""How many workgroups keep a large device busy: keys are cut until there are as many."""


@final
@dataclass(frozen=True)
class KeySplit:
    """How few queries' keys are cut into parts, where neighbouring heads may share keys.

    `columns` is how many columns of values a workgroup has.
    """

    found: Attention
    columns: int

    @property
    def heads(self) -> HeadGroup | None:
        """The groups of heads that read the same keys; None if each head has its own."""
        return head_group(self.found)

    @property
    def outer(self) -> tuple[Index, ...]:
        """The batch indices without that of `heads`: each value of them has its own keys."""
        heads = self.heads
        own = None if heads is None else heads.index
        return tuple(index for index in self.found.batch if index != own)

    @property
    def rows(self) -> Size:
        """How many rows read the same keys: the queries of all heads of a group."""
        heads = self.heads
        return extent_size(self.found.row.extent) * (
            ONE if heads is None else heads.size
        )

    @property
    def row_tiles(self) -> Size:
        """The number of tiles of four rows that read the same keys."""
        return ceil_div(self.rows, VECTOR)

    @property
    def column_tiles(self) -> Size:
        """The number of tiles of columns."""
        return ceil_div(extent_size(self.found.column.extent), self.columns)

    @property
    def tiles(self) -> Size:
        """The number of workgroups for one part of the keys."""
        groups = ONE if self.heads is None else self.heads.count
        outer = domain_size(self.outer)
        return product_of((outer, groups, self.row_tiles, self.column_tiles))

    @property
    def parts(self) -> Size:
        """How many parts the keys have: enough to fill a device, but no part below `KEYS`."""
        # As many parts as fill a device, but no more than there are turns of `KEYS` keys.
        fill = ceil_div(GROUPS, maximum(self.tiles, 1))
        keys = ceil_div(extent_size(self.found.key.extent), KEYS)
        return maximum(minimum(fill, keys), 1)


# Grouped-query attention: several heads of queries that read the same keys and values.
#
# `h` heads of queries share `r` heads of keys where keys and values are read at `g / (h / r)`
# alone.  The `h / r` heads with the same quotient are rows of the same product: a workgroup
# reads keys and values once for all of them.


@final
@dataclass(frozen=True, slots=True)
class HeadGroup:
    """Groups of `size` neighbouring heads, which read the same keys and values.

    `index` is the index of the heads.
    """

    index: Index
    size: Size

    @property
    def count(self) -> Size:
        """How many groups there are."""
        return ceil_div(extent_size(self.index.extent), self.size)


def head_group(found: Attention) -> HeadGroup | None:
    """Return the groups of heads that share keys and values, or None if each has its own."""
    for index in found.batch:
        uses = [*_uses(found.product.right, index), *_uses(found.value, index)]
        sizes = set(uses)
        # An index that keys and values don't have at all: multi-query attention.
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
            over, by = _size(left), _size(right)
            return None if over is None or by is None else quotient(over, by)
        case _:
            return None
