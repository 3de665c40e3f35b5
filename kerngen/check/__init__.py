"""The checker: from syntax trees to typed kernels, or diagnostics."""

from kerngen.check.files.checker import check

__all__ = ["check"]
