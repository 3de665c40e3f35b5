"""Kernels against oracles written by hand, within bounds that are derived, not tuned."""
