"""The order in which the elements of a recurrence are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Recurrence:
    """The axis and direction of a recurrence, and how far back it reads.

    `let h[i, t] = if t > 1 { h[i, t - 2] + x[i, t] } else { x[i, t] }` has the axis 1 and
    the distance 2, which is the greatest of all its reads.  It is `descending` if the
    reads are at `t + 2`.
    """

    axis: int
    distance: int
    descending: bool = False
