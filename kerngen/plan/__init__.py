"""What the host does for a call, as data: sizes, guards and what they decide.

A leaf package: the compiler writes these values and the runtime evaluates them.
"""
