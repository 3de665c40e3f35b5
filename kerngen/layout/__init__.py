"""WGSL's memory layout rules, and the structs that kernels lay out by them."""
