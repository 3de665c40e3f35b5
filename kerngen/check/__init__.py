"""Syntax trees to typed kernels, or diagnostics of what is wrong with them."""

from kerngen.check.files.checker import check

__all__ = ["check"]
