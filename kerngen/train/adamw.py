"""AdamW's settings, and the sum that decides whether a step is taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import final

from kerngen.runtime import Scalar, UniformRangeError, Vector, f32
from kerngen_kernels import clip, reduction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """The settings of a step, with the names and ranges of torch.optim.AdamW."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float

    def __post_init__(self) -> None:
        """Refuse what makes no step: negative or infinite numbers, a beta of 1 or more.

        Raises:
            UniformRangeError: If a setting is out of its range.
        """
        for field in fields(self):
            value = float(getattr(self, field.name))
            most = 1.0 if field.name.startswith("beta") else math.inf
            if not 0.0 <= value < most:
                below = f" and below {most:g}" if most < math.inf else ", and finite"
                raise UniformRangeError(
                    f"adamw_step: {field.name} is {value}; expected at least 0{below}."
                )


def sum_squares(parts: Sequence[Vector[f32]]) -> Scalar[f32]:
    """Return the sum of the squares of all elements, on the device."""
    first, *rest = parts
    total = reduction.sum_squares(first)
    for part in rest:
        clip.add_sum_squares(total, part)
    return total
