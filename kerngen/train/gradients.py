"""Gradients: written by a walk back, clipped together, and trusted only while whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import final

import numpy as np

from kerngen import nn
from kerngen.runtime import Context, Scalar, Vector, f32
from kerngen.train.arena import Arena, Layout
from kerngen.train.errors import TornStateError
from kerngen.train.integrity import Integrity
from kerngen.train.names import Named
from kerngen_kernels import clip, elementwise, reduction


@final
@dataclass(frozen=True, slots=True)
class Norm:
    """A sum of squares on the device, and which gradients it decides about.

    `writes` counts their writes up to there: any write after it makes the norm void.
    `is_finite` if the host has checked it.
    """

    total: Scalar[f32]
    writes: int
    is_finite: bool


@final
class Gradients:
    """The arena of gradients, and what is known of its contents."""

    def __init__(self, ctx: Context, layout: Layout) -> None:
        """Start with zeros."""
        self.arena = Arena(ctx, layout)
        self._whole = Integrity(self.arena.segments)
        self.one = ctx.scalar(1.0, f32)
        self._clipped: Norm | None = None

    @property
    def fault(self) -> str:
        """Why they are of no single loss, as a clause; empty if they are."""
        return self._whole.fault

    @property
    def writes(self) -> int:
        """How many calls have written them."""
        return self._whole.writes

    def backward(
        self,
        loss: nn.Variable,
        parameters: Named[nn.Variable],
        *,
        accumulate: bool,
    ) -> None:
        """Write the gradients of a loss by these parameters, 0 where there is no way."""
        with self._whole.writing("backward() was interrupted", anew=not accumulate):
            reached = set(
                nn.backward(
                    loss,
                    self.one,
                    parameters=frozenset(parameters.values()),
                    accumulate=accumulate,
                )
            )
            if accumulate:
                return
            others = [
                name for name, value in parameters.items() if value not in reached
            ]
            for span in self.arena.layout.spans(others):
                self.arena.part(span).clear()

    def clear(self) -> None:
        """Overwrite all with zeros."""
        with self._whole.writing("a clearing was interrupted", anew=True):
            self.arena.clear()

    def replaying(self, *, anew: bool) -> AbstractContextManager[None]:
        """Let a block write them: all of them `anew`, or what there is further."""
        return self._whole.writing("a replay was interrupted", anew=anew)

    def forget_norm(self) -> None:
        """Forget what clipping knew: the calls were captured, and have not run."""
        self._clipped = None

    def norm(self) -> Scalar[f32]:
        """Return the norm of all, on the device."""
        return _root(_sum_squares(self.arena.segments))

    def clip(
        self, max_norm: float, check: Callable[[Scalar[f32]], None] | None
    ) -> Scalar[f32]:
        """Scale all to a norm of `max_norm` at most, and return the norm before.

        `check` is called with it before anything is changed; what it lets pass is finite.
        """
        total = _sum_squares(self.arena.segments)
        losses, norm = total.losses, _root(total)
        if check is not None:
            check(norm)
        with self._whole.writing("a clip was interrupted"):
            for segment in self.arena.segments:
                clip.clip_by_norm(segment, total, max_norm=max_norm)
            if total.losses != losses:
                raise TornStateError(
                    "clip_gradients: the norm was lost with an error of another thread. "
                    "Compute the loss again and call backward()."
                )
        self._clipped = Norm(total, self.writes, is_finite=check is not None)
        return norm

    def norm_of(self, names: Sequence[str]) -> Norm:
        """Return the norm that decides whether a step by these gradients is taken.

        It is the norm that clipping took, if that was of these very gradients.
        """
        layout, clipped = self.arena.layout, self._clipped
        spans = layout.spans(names)
        if (
            spans == layout.whole
            and clipped is not None
            and clipped.writes == self.writes
        ):
            return clipped
        parts = [self.arena.part(span) for span in spans]
        return Norm(_sum_squares(parts), self.writes, is_finite=False)

    def culprits(self) -> str:
        """Name the parameters whose gradients are not finite now; this waits."""
        wrong = {
            name: int(np.count_nonzero(~np.isfinite(gradient)))
            for name, gradient in self.arena.read().items()
        }
        found = [f"'{name}' ({count})" for name, count in wrong.items() if count]
        if not found:
            return "All elements are finite, but the sum of their squares is not."
        return f"These have elements that are not finite: {', '.join(found)}."


def _sum_squares(parts: Sequence[Vector[f32]]) -> Scalar[f32]:
    """Return the sum of the squares of all elements, on the device."""
    first, *rest = parts
    total = reduction.sum_squares(first)
    for part in rest:
        clip.add_sum_squares(total, part)
    return total


def _root(total: Scalar[f32]) -> Scalar[f32]:
    """Return the square root of a scalar, on the device."""
    return elementwise.sqrt(total.reshape(1)).reshape(())
