"""The names of values' types in messages, with an article."""

from __future__ import annotations

import re
from typing import Final

_BEGINS_WITH_Y: Final = re.compile(r"uni|use|uu|u\d")
"""The beginnings of words that are spoken with a y: `a uint`, `a user`, `a u32`."""


def kind_of(value: object) -> str:
    """Return a value's type in words: `an int`, `a torch.Tensor`, `None`."""
    if value is None:
        return "None"
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    return with_article(
        kind.__name__ if root == "builtins" else f"{root}.{kind.__name__}"
    )


def with_article(name: str) -> str:
    """Return a name with its article: `a list`, `an int`."""
    word = name.lower()
    begins_with_vowel = word[0] in "aeiou" and not _BEGINS_WITH_Y.match(word)
    return f"{'an' if begins_with_vowel else 'a'} {name}"
