"""Syntax trees to typed kernels, and the catalogue of what can be wrong with them."""

from kerngen.check.module import check

__all__ = ["check"]
