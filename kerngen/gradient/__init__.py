"""Automatic differentiation: from a kernel to the kernel of its gradient."""

from kerngen.gradient.derive import derive
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.text import kernel_text

__all__ = ["GradientError", "Kind", "derive", "kernel_text"]
