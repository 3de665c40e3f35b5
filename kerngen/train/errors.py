"""The exceptions of training, beyond the runtime's."""

from __future__ import annotations

from typing import final

from kerngen.runtime import Error


@final
class NonFiniteError(Error, ArithmeticError):
    """Gradients are infinite or not numbers; the step was not taken."""


@final
class TornStateError(Error, RuntimeError):
    """An error may have left a step half taken: load a state before going on."""


@final
class CheckpointError(Error, ValueError):
    """A file is no checkpoint, is damaged, or belongs to other parameters."""


@final
class ExchangeError(Error, RuntimeError):
    """Processes that train together lost each other, or don't belong together."""
