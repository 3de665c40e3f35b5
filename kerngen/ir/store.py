"""The node of stores at a position: `cache[at + i, g] = k[i, g]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from kerngen.ir.nodes import Expr, Subscript
    from kerngen.ir.types import ValueType


@final
@dataclass(frozen=True, slots=True)
class StoreAt:
    """A value, and the position in the target where it is stored: `m[row, j] = value`.

    It is the whole value of a statement.  `places` has a subscript for each axis of the
    target: an index of the statement; an affine one, which the host checks; or one that
    the device computes, which is `Clamped` in the IR, though it is not clamped: a store
    outside of the axis is left out.  No two elements have the same position.
    """

    value: Expr
    places: tuple[Subscript, ...]

    @property
    def type(self) -> ValueType:
        """The type of the value."""
        return self.value.type
