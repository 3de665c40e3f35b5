"""Sums in adjoints whose terms are at computed places: what is a let before them."""
