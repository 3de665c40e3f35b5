"""The guard: keeps steps with gradients that are not finite from being taken.

It is a number on the device, 0 or the first step that failed.  Updates read it there, so
that nobody has to wait; the host looks at it when it waits anyway.
"""

from __future__ import annotations

from typing import final

from kerngen.runtime import Context, Scalar, f32, u32
from kerngen_kernels import clip


@final
class Guard:
    """A device's note of the first step that may not be taken; `failed` is read by updates."""

    def __init__(self, ctx: Context) -> None:
        """Start with no failed step."""
        self.failed: Scalar[u32] = ctx.zeros((), u32)
        self._armed = False
        self._looking = False

    def note(self, total: Scalar[f32], step: int) -> None:
        """Record that a step fails if the sum of its gradients' squares is not finite."""
        clip.note_nonfinite(self.failed, total, step=step)
        self._armed = True

    def look(self) -> int:
        """Return the failed step or 0, waiting if steps were noted since the last look.

        A look within a look returns 0: to read a tensor is to look, too.
        """
        if not self._armed or self._looking:
            return 0
        self._looking = True
        try:
            failed = int(self.failed.item())
        finally:
            self._looking = False
        self._armed = False
        return failed

    def clear(self) -> None:
        """Let steps be taken again."""
        self.failed.copy_from(0)
        self._armed = False
