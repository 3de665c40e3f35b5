"""Print what a build leaves behind: Python bindings with their NumPy references."""

from __future__ import annotations

from kerngen.emit.binding import emit_binding
from kerngen.emit.kernel_plan import plan_kernels

__all__ = ["emit_binding", "plan_kernels"]
