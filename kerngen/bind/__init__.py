"""Typed Python for WGSL that exists already: its declarations, read and printed."""
