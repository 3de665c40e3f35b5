"""Radix sort: its passes over all terms, and the sort of one tile."""
