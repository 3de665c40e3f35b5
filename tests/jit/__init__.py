"""Kernels compiled in memory, and how notebooks show them."""
