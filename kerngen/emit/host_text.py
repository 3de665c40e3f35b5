"""Sizes and guards as functions of generated modules: workgroup counts, conditions."""

from __future__ import annotations

from typing import Final

from kerngen.plan.size import Guard, Size
from kerngen.plan.text import TextPrinter

_PYTHON: Final = TextPrinter(
    symbol=lambda name: f'd["{name}"]',
    functions={"max": "hostmath.maximum", "min": "hostmath.minimum"},
)
"""A kernel may be named `max`: the module's own name would hide Python's."""


def size_lambda(size: Size) -> str:
    """Return a function of the dims `d`."""
    return f"lambda d: {_PYTHON.size(size)}"


def guard_lambda(guard: Guard) -> str:
    """Return a condition on the dims `d`."""
    return f"lambda d: {_PYTHON.guard(guard)}"
