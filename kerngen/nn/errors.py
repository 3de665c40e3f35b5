"""The exceptions of differentiation."""

from __future__ import annotations

from typing import final

from kerngen.runtime import Error


@final
class GraphError(Error, RuntimeError):
    """Raised if gradients can't be computed: no parameter, or a second backward."""
