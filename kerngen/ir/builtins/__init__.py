"""The built-in functions: one row each, with types, WGSL, NumPy and derivative."""
