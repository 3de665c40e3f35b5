"""How many examples Hypothesis draws: few by default, many at night."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""What Hypothesis draws of its own accord."""


def examples(count: int) -> int:
    """Return how many examples to draw where `count` would be drawn at the usual budget.

    `tests/conftest.py` loads the profile whose budget this follows: 40 of 100 by default,
    and ten times as many as `count` with 'tools/test --nightly'.
    """
    return max(1, count * settings().max_examples // USUAL)
