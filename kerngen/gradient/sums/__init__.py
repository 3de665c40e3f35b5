"""Sums in adjoints whose terms are at computed places, and the lets before them."""
