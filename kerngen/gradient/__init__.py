"""Gradients, derived from the equations: a kernel in, the kernel of its gradient out."""

from kerngen.gradient.derive import derive
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.text import kernel_text

__all__ = ["GradientError", "Kind", "derive", "kernel_text"]
