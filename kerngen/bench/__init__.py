"""Benchmarks: kernels timed on the device, beside its ceilings and other libraries.

Kernels are launched back to back between two timestamps of the device, on inputs that are
rotated so that they are not in a cache, until there is a median.  `standard.py` is the table
of the kernels that are timed.
"""
