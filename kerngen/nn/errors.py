"""What can go wrong between functions; within one, it is the runtime's errors."""

from __future__ import annotations

from typing import final

from kerngen.runtime import Error


@final
class GraphError(Error, RuntimeError):
    """Gradients can't be computed: of no loss, of no parameter, or a second time."""
