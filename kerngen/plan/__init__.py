"""Plans: the host's part of a call, as data.

A leaf package: the compiler writes these values and the runtime evaluates them.
"""
