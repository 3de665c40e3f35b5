"""Diagnostics of the checker: a class each, by the hundreds of their codes."""
