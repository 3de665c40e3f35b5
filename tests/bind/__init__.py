"""Typed Python for WGSL that exists already."""
