"""Print what a build leaves behind: Python bindings with their NumPy references."""

from __future__ import annotations

from kerngen.emit.binding import emit_binding
from kerngen.emit.kernel_plan import emit_plan

__all__ = ["emit_binding", "emit_plan"]
