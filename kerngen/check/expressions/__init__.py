"""Checking expressions, by the rules of the place where they are written."""
