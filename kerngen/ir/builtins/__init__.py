"""The built-in functions: a row each, with types, WGSL, NumPy and derivative."""
