"""Staging: from a kernel's statements to stages, by passes over the statements."""
