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
    """A device's note of the first step that may not be taken.

    Updates read `failed` on the device.  A look costs a readback if steps were noted
    since the last one, whichever thread it comes from.
    """

    def __init__(self, ctx: Context) -> None:
        """Start with no failed step."""
        self.failed: Scalar[u32] = ctx.zeros((), u32)
        self._armed = False

    def note(self, total: Scalar[f32], step: int) -> None:
        """Record that a step fails if the sum of its gradients' squares is not finite."""
        clip.note_nonfinite(self.failed, total, step=step)
        self._armed = True

    def look(self) -> int:
        """Return the failed step or 0, waiting if there is something to wait for.

        It is disarmed before it reads, for to read a tensor is to look, too; and armed
        again if that fails.  A step that is noted meanwhile arms it anew.
        """
        if not self._armed:
            return 0
        self._armed = False
        try:
            return int(self.failed.item())
        except BaseException:
            self._armed = True
            raise

    def clear(self) -> None:
        """Let steps be taken again."""
        self.failed.clear()
        self._armed = False
