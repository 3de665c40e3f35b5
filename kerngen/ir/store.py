"""Stores at a position, as values of statements."""

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

    Only a whole value of a statement is one.  It has a subscript for each axis of the
    target: an index of the statement; one that is affine, which the host checks; or one
    that is read from the device, `Clamped` here as in reads.  Where that is outside of its
    axis, nothing is stored.  No two elements of the domain have the same position.
    """

    value: Expr
    places: tuple[Subscript, ...]

    @property
    def type(self) -> ValueType:
        """The type of the value."""
        return self.value.type
