"""Where choices come from: a string of random bytes, which hypothesis draws at once.

Drawing choice by choice would be slower, and worse: of every choice hypothesis makes
later examples that repeat parts of earlier ones, until most programs look alike.  As
one string a program is drawn anew each time, and still shrinks: the byte 0 is the
simplest choice everywhere, and so is the end of the string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, final

T = TypeVar("T")


@final
class Dice:
    """Choices, one byte each; the first of several is the simplest."""

    def __init__(self, choices: bytes) -> None:
        """Read from a string."""
        self._choices = iter(choices)

    def below(self, count: int) -> int:
        """Draw from 0 up to, not including, `count`."""
        return next(self._choices, 0) * count // 256 if count > 1 else 0

    def pick(self, choices: Sequence[T]) -> T:
        """Draw one of several."""
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        """Be true so often."""
        return self.below(100) >= 100 - percent

    def several(self, choices: Sequence[T], count: int) -> list[T]:
        """Draw so many different ones, in random order."""
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]
