"""Number literals: their values, and how to write those of other languages."""

from __future__ import annotations

import re
from typing import Final

_OTHERS: Final = re.compile(
    r"(?P<whole>\d*)(?:(?P<point>\.)(?P<fraction>\d*))?(?P<exponent>[eE][+-]?\d+)?"
    r"(?P<suffix>(?:[fiuFIUhHlLdD]|[fiu]\d+|[lLuU]{2,3})?)"
)
_SUFFIXED: Final = re.compile(r"(0[xX][0-9a-fA-F]+)[uUlLi]+")
_PRODUCT: Final = re.compile(r"(?!0[xXbBoO])(\d+(?:\.\d+)?)(?![eE]$)([A-Za-z_]\w*)")


def whole(text: str) -> int:
    """Return the value of a decimal or hexadecimal whole number."""
    return int(text, 16 if text[:2] in {"0x", "0X"} else 10)


def as_written_here(text: str) -> str:
    """Return another language's number literal as it is written here, or ""."""
    text = text.replace("_", "") if text[-1] != "_" else text
    if text.isdecimal():
        # Python turns only so many digits at once into a number.
        return "".join(str(int(digit)) for digit in text).lstrip("0") or "0"
    try:
        return str(int(text, 0))
    except ValueError:
        pass
    if match := _SUFFIXED.fullmatch(text):
        return match[1]
    if match := _OTHERS.fullmatch(text):
        exponent = match["exponent"] or ""
        is_float = match["point"] or exponent or match["suffix"][:1] in set("fFhHdD")
        if not match["suffix"] or match["whole"] or match["fraction"]:
            point = (
                f".{match['fraction'] or 0}" if match["point"] or not exponent else ""
            )
            tail = f"{point}{exponent}" if is_float else ""
            return f"{match['whole'] or 0}{tail}"
    if match := _PRODUCT.fullmatch(text):
        return f"{match[1]} * {match[2]}"
    return ""
