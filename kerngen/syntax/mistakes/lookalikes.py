"""Characters that look like one of the language: a Cyrillic letter that is meant as 'x'."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CYRILLIC: Final = str.maketrans(
    "\N{CYRILLIC SMALL LETTER A}\N{CYRILLIC SMALL LETTER IE}"
    "\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}"
    "\N{CYRILLIC SMALL LETTER JE}\N{CYRILLIC SMALL LETTER O}"
    "\N{CYRILLIC SMALL LETTER ER}\N{CYRILLIC SMALL LETTER ES}"
    "\N{CYRILLIC SMALL LETTER DZE}\N{CYRILLIC SMALL LETTER U}"
    "\N{CYRILLIC SMALL LETTER HA}"
    "\N{CYRILLIC CAPITAL LETTER A}\N{CYRILLIC CAPITAL LETTER VE}"
    "\N{CYRILLIC CAPITAL LETTER IE}"
    "\N{CYRILLIC CAPITAL LETTER BYELORUSSIAN-UKRAINIAN I}"
    "\N{CYRILLIC CAPITAL LETTER JE}\N{CYRILLIC CAPITAL LETTER KA}"
    "\N{CYRILLIC CAPITAL LETTER EM}\N{CYRILLIC CAPITAL LETTER EN}"
    "\N{CYRILLIC CAPITAL LETTER O}\N{CYRILLIC CAPITAL LETTER ER}"
    "\N{CYRILLIC CAPITAL LETTER ES}\N{CYRILLIC CAPITAL LETTER DZE}"
    "\N{CYRILLIC CAPITAL LETTER TE}\N{CYRILLIC CAPITAL LETTER U}"
    "\N{CYRILLIC CAPITAL LETTER HA}",
    "aeijopcsyxABEIJKMHOPCSTYX",
)
"""Cyrillic letters that look like Latin ones, with these."""

_MEANT: Final = {
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{DOUBLE LOW-9 QUOTATION MARK}": '"',
    "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}": '"',
    "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}": '"',
    "\N{ASTERISK OPERATOR}": "*",
    "\N{DOT OPERATOR}": "*",
    "\N{BULLET}": "*",
    "\N{EM DASH}": "-",
    "\N{HYPHEN}": "-",
    "\N{NON-BREAKING HYPHEN}": "-",
    "\N{FRACTION SLASH}": "/",
    "\N{DIVISION SLASH}": "/",
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{RIGHTWARDS DOUBLE ARROW}": "->",
    "\N{LEFTWARDS ARROW}": "=",
    "\N{GREEK QUESTION MARK}": ";",
    "\N{IDEOGRAPHIC FULL STOP}": ".",
    "\N{IDEOGRAPHIC COMMA}": ",",
    "\N{GREEK SMALL LETTER PI}": "3.14159265",
    "\N{SUPERSCRIPT TWO}": "pow(x, 2.0)",
    "\N{SUPERSCRIPT THREE}": "pow(x, 3.0)",
}
_TOKENS: Final = re.compile(r"[\w()\[\]{};:,.@=<>+\-*/%!|^&~\"]+|->|\s", re.ASCII)
_GREEK: Final = re.compile(r"GREEK (?:SMALL|CAPITAL) LETTER (\w+)")


def meant_by(character: str) -> str:
    """Return the character that was probably meant by another one, or ""."""
    if character in _MEANT:
        return _MEANT[character]
    plain = unicodedata.normalize("NFKD", character).translate(_CYRILLIC)
    if greek := _GREEK.match(unicodedata.name(plain[0], "")):
        return greek[1].lower()
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
    return plain if _TOKENS.fullmatch(plain) and plain != character else ""


def described(character: str) -> str:
    """Return a character's number and name, as it may be invisible."""
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X} {name}".rstrip()
