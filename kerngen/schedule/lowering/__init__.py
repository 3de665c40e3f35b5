"""Expressions and steps as WGSL: reads, subscripts, loops, and what lanes join."""
