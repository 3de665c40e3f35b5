"""The items of a file: constants, structs, functions, and the heads of kernels."""
