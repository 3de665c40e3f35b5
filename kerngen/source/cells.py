"""Terminal cells: how source characters are printed, and how wide they are."""

from __future__ import annotations

import unicodedata

TAB = "    "


def shown(char: str) -> str:
    """Return a character in its printed form; one that a terminal would obey is replaced."""
    if char == "\t":
        return TAB
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return "\N{REPLACEMENT CHARACTER}"
    return char


def clean(text: str) -> str:
    """Return a text in the form in which it is printed."""
    if _is_plain(text):
        return text
    return "".join(map(shown, text))


def width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    if _is_plain(text):
        return len(text)
    return sum(_char_width(char) for char in clean(text))


def _is_plain(text: str) -> bool:
    """Whether every character is printed as it is, in one column: the usual case."""
    return text.isascii() and text.isprintable()


def _char_width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
