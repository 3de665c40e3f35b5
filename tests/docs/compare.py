"""Whether an output is what a page shows."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?(?: ?(?:ns|us|ms|s|MiB|GiB))?\b%?")


def is_shown(output: str, shown: str, *, figures: bool = False) -> bool:
    """Compare an output with what a page shows of it.

    `...` stands for any text, of several lines, too.  Where the `figures` differ from run
    to run, each number stands for any other, and lines sorted by them have no order.
    """
    if figures:
        output, shown = _without_numbers(output), _without_numbers(shown)
    pattern = ".*?".join(re.escape(part) for part in _trimmed(shown).split("..."))
    return re.fullmatch(pattern, _trimmed(output), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _without_numbers(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", _NUMBER.sub("#", text))
    return "\n".join(sorted(_trimmed(text).splitlines()))
