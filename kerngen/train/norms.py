"""The norm of gradients, which decides how much they are clipped and whether a step is
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from kerngen.runtime import Scalar, Vector, f32
from kerngen_kernels import clip, elementwise, reduction


@final
@dataclass(frozen=True, slots=True)
class Norm:
    """A sum of squares on the device, and which gradients it is of.

    `writes` counts the writes of the gradients up to where it still decides about them:
    any write after that makes it void.  `is_finite` says that the host has seen it.
    """

    total: Scalar[f32]
    writes: int
    is_finite: bool


def sum_squares(parts: Sequence[Vector[f32]]) -> Scalar[f32]:
    """Return the sum of the squares of all elements, on the device."""
    first, *rest = parts
    total = reduction.sum_squares(first)
    for part in rest:
        clip.add_sum_squares(total, part)
    return total


def root(total: Scalar[f32]) -> Scalar[f32]:
    """Return the square root of a scalar, on the device."""
    return elementwise.sqrt(total.reshape(1)).reshape(())
