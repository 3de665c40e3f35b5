"""Checking the items of a file: constants, structs, functions, and heads of kernels."""
