"""What takes the place of functions in tests."""

from __future__ import annotations


def nothing(*_: object) -> None:
    """Do and return nothing."""
