"""What values are called in messages, with an article."""

from __future__ import annotations

import re
from typing import Final

_BEGINS_WITH_Y: Final = re.compile(r"uni|use|uu|u\d")
"""How words begin that have a vowel in writing alone."""


def kind_of(value: object) -> str:
    """Return `an int`, `a torch.Tensor` or `None`: other libraries have tensors, too."""
    if value is None:
        return "None"
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    return with_article(
        kind.__name__ if root == "builtins" else f"{root}.{kind.__name__}"
    )


def with_article(name: str) -> str:
    """Return `a list`, or `an int`."""
    word = name.lower()
    begins_with_vowel = word[0] in "aeiou" and not _BEGINS_WITH_Y.match(word)
    return f"{'an' if begins_with_vowel else 'a'} {name}"
