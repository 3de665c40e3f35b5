"""Counts in words: `1 axis`, `2 axes`."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 axis` or `2 axes`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
