"""Sorting by radix: the passes over all terms, and what each does of a tile."""
