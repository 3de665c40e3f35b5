"""The guard: skips steps with gradients that are not finite, without a wait.

The guard is a number on the device, 0 or the first step that failed.  Each update reads it
there, and changes nothing unless it is 0; so the host need not wait for a step.  It reads
the number when it waits anyway, for any tensor.

Steps after a failed one are skipped, too: they would be computed from parameters that
should have moved, and the host has counted the step already (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident
from typing import final

from kerngen.runtime import Context, Scalar, f32, u32
from kerngen_kernels import clip


@final
class StepGuard:
    """The number of the first failed step, on the device; updates check it there.

    `failed` is that number.  After `note`, the guard is armed: the next `look` reads
    `failed`, which waits for the device.  A look in another thread than that of the note,
    or of a guard that is not armed, reads nothing.
    """

    def __init__(self, ctx: Context) -> None:
        """Start with no failed step."""
        self.failed: Scalar[u32] = ctx.zeros((), u32)
        self._thread = get_ident()
        self._armed = False
        self._looking = False

    def note(self, total: Scalar[f32], step: int) -> None:
        """Record a check on the device: the step fails if `total` is not finite."""
        self.arm()
        clip.note_nonfinite(self.failed, total, step=step)

    def arm(self) -> None:
        """Make the next look of this thread wait for the recorded checks."""
        self._thread = get_ident()
        self._armed = True

    @contextmanager
    def look(self) -> Generator[int, None, None]:
        """Yield the number of the failed step or 0, waiting if checks are recorded.

        Every read of a tensor of the context looks, also the one of `failed` in here: a
        look within a look yields 0.
        """
        if self._looking or not self._armed or self._thread != get_ident():
            yield 0
            return
        self._looking = True
        try:
            failed = int(self.failed.item())
            yield failed
            self._armed = False
        finally:
            self._looking = False

    def clear(self) -> None:
        """Reset the guard, so that steps are taken again."""
        self.failed.clear()
        self._armed = False
