"""The gradients of a trainer: their arena, norm and validity."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from kerngen import nn
from kerngen.runtime import Context, Error, Scalar, StateError, Vector, f32
from kerngen.train.arena import Arena, Layout, Span
from kerngen.train.errors import TornStateError
from kerngen.train.integrity import Integrity
from kerngen.train.names import Named
from kerngen_kernels import clip, elementwise, reduction


@final
@dataclass(frozen=True, slots=True)
class Norm:
    """The sum of squares of some gradients, on the device.

    `writes` is the number of writes of the gradients so far: after another one, the norm
    is outdated. `is_finite` if the host has checked it.
    """

    total: Scalar[f32]
    writes: int
    is_finite: bool


@final
class Gradients:
    """The arena of gradients, with what the host knows of them: validity and norm."""

    def __init__(
        self,
        ctx: Context,
        layout: Layout,
        held: Sequence[Span] | None = None,
    ) -> None:
        """Allocate zeros; `held` are this rank's spans, of a sharded trainer's gradients.

        Only those are valid after an exchange.  `one` is the gradient of a loss by itself.
        """
        self.arena = Arena(ctx, layout)
        self.held = layout.whole if held is None else [*held]
        self.parts = [self.arena.part(span) for span in self.held]
        self._total: Scalar[f32] | None = None if held is None else ctx.zeros((), f32)
        self._whole = Integrity(self.arena.segments)
        self.one = ctx.scalar(1.0, f32)
        self._clipped: Norm | None = None
        self._finite_at = -1

    @property
    def fault(self) -> str:
        """The reason why the gradients are invalid, as a clause; "" if they are valid."""
        return self._whole.fault

    @property
    def writes(self) -> int:
        """The number of calls that have written the gradients."""
        return self._whole.writes

    @property
    def is_finite(self) -> bool:
        """Whether the host has seen that the sum of squares is finite."""
        return self._finite_at == self.writes

    def backward(
        self,
        loss: nn.Variable,
        parameters: Named[nn.Variable],
        *,
        accumulate: bool,
        on_final: Callable[[str], object] | None = None,
    ) -> None:
        """Write the gradients of a loss; 0 for parameters that it does not depend on."""
        with self._whole.writing("backward() was interrupted", anew=not accumulate):
            reached = set(
                nn.backward(
                    loss,
                    self.one,
                    parameters=frozenset(parameters.values()),
                    accumulate=accumulate,
                    on_final=_by_name(on_final, parameters),
                )
            )
            others = [
                name for name, value in parameters.items() if value not in reached
            ]
            for span in [] if accumulate else self.arena.layout.spans(others):
                self.arena.part(span).clear()
            if on_final is not None:
                for name in others:
                    on_final(name)

    def clear(self) -> None:
        """Overwrite all gradients with zeros."""
        with self._whole.writing("a clearing was interrupted", anew=True):
            self.arena.clear()

    @contextmanager
    def exchanging(self) -> Generator[None, None, None]:
        """Run a block that exchanges gradients; if it fails, they are invalid."""
        try:
            with self._whole.writing("an exchange was interrupted"):
                yield
        except Error:
            self._whole.spoil("an exchange of them failed")
            raise

    def replaying(self, *, anew: bool) -> AbstractContextManager[None]:
        """Run a block that writes gradients: all of them `anew`, or adding to them."""
        return self._whole.writing("a replay was interrupted", anew=anew)

    def forget_norm(self) -> None:
        """Drop the known norm, as captured calls may change the gradients."""
        self._clipped, self._finite_at = None, -1

    def note_captured_exchange(self) -> None:
        """Note that replays exchange gradients, after which their norm is known."""
        if self._total is not None:
            self._finite_at = self.writes

    def norm(self) -> Scalar[f32]:
        """Return the norm of all gradients, on the device."""
        return _root(self._sum_squares())

    def _sum_squares(self) -> Scalar[f32]:
        """Return the sum of all squares; if sharded, the one that the exchange computed."""
        if self._total is None:
            return _sum_squares(self.parts)
        if not self.is_finite:
            raise StateError(
                "The gradients of a sharded trainer have no norm before exchange(), nor "
                "once they are written again. Call it after backward(), then clip once."
            )
        return self._total

    def clip(
        self, max_norm: float, check: Callable[[Scalar[f32]], None] | None
    ) -> Scalar[f32]:
        """Scale all gradients to a norm of at most `max_norm`; return the norm before.

        `check` is called with that norm before anything is changed, and raises if it is
        not finite.
        """
        total = self._sum_squares()
        losses, norm = total.losses, _root(total)
        is_finite = check is not None or self.is_finite
        if check is not None:
            check(norm)
        with self._whole.writing("a clip was interrupted"):
            for part in self.parts:
                clip.clip_by_norm(part, total, max_norm=max_norm)
            if total.losses != losses:
                raise TornStateError(
                    "clip_gradients: the norm was lost with an error of another thread. "
                    "Compute the loss again and call backward()."
                )
        self._clipped = Norm(total, self.writes, is_finite=is_finite)
        return norm

    def norm_of(self, names: Sequence[str]) -> Norm:
        """Return the norm by which the device decides whether to take a step.

        If the gradients were clipped and not written since, it is the norm of the clip,
        so that the squares are added up once.
        """
        layout, clipped = self.arena.layout, self._clipped
        spans = layout.spans(names)
        if (
            (spans == layout.whole or self._total is not None)
            and clipped is not None
            and clipped.writes == self.writes
        ):
            return clipped
        if self._total is not None:
            return Norm(self._sum_squares(), self.writes, is_finite=True)
        parts = [self.arena.part(span) for span in spans]
        return Norm(_sum_squares(parts), self.writes, is_finite=self.is_finite)

    def note_finite(self, total: float) -> None:
        """Record that the host has seen a finite sum of squares."""
        if self._total is not None:
            self._total.copy_from(total)
        self._finite_at = self.writes

    def culprits(self) -> str:
        """Return the names of parameters whose gradients are not finite; waits."""
        wrong = {
            name: int(np.count_nonzero(~np.isfinite(gradient)))
            for name, gradient in self.arena.read().items()
        }
        found = [f"'{name}' ({count})" for name, count in wrong.items() if count]
        if not found:
            return "All elements are finite, but the sum of their squares is not."
        return f"These have elements that are not finite: {', '.join(found)}."


def _by_name(
    on_final: Callable[[str], object] | None, parameters: Named[nn.Variable]
) -> Callable[[nn.Variable], object] | None:
    """Return a function of variables that calls one of their names."""
    if on_final is None:
        return None
    names = {value: name for name, value in parameters.items()}
    return lambda value: on_final(names[value])


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
