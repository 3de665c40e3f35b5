"""Columns of source text on a terminal: what each character shows as, and how wide."""

from __future__ import annotations

import unicodedata

TAB = "    "


def shown(char: str) -> str:
    """What to print for a character: itself, unless that could upset the terminal."""
    if char == "\t":
        return TAB
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return "\N{REPLACEMENT CHARACTER}"
    return char


def clean(text: str) -> str:
    """The text as it is printed."""
    if _is_plain(text):
        return text
    return "".join(map(shown, text))


def width(text: str) -> int:
    """How many columns the text takes when it is printed."""
    if _is_plain(text):
        return len(text)
    return sum(_char_width(char) for char in clean(text))


def _is_plain(text: str) -> bool:
    """Whether every character is itself, in one column: so it is nearly always."""
    return text.isascii() and text.isprintable()


def _char_width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
