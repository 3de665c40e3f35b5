"""Hints in diagnostics that need more than a template."""
