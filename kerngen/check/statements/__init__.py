"""Checking the statements of a kernel."""
