"""Access to the pages by code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kerngen.explain.page import Page

FOLDER: Final = Path(__file__).parent / "pages"

GROUPS: Final = {
    "KG00": "Files",
    "KG01": "Syntax",
    "KG02": "Names and calls",
    "KG03": "Types and constants",
    "KG04": "Indices, subscripts and lengths",
    "KG05": "Parameters and statements",
    "KG06": "Schedules",
    "KG07": "Schedules and the stages of their kernels",
    "KG08": "Structs",
    "KG09": "Conditions on a call",
    "KG11": "Vectors, matrices and members of structs",
    "KG12": "Gradients",
    "KG13": "Recurrences: lets that read themselves",
    "KG14": "WGSL that is bound",
}
"""What the codes of a hundred are about."""

_NEAR, _NONE = 2, "0000"


def codes() -> list[str]:
    """Return every code that has a page, in order."""
    return sorted(file.stem for file in FOLDER.glob("KG*.md"))


def page(code: str) -> Page:
    """Return the page of a code; raise `KeyError` if it has none."""
    file = FOLDER / f"{code}.md"
    if code not in codes():
        raise KeyError(code)
    return Page(code, file.read_text(encoding="utf-8"))


def grouped() -> dict[str, list[Page]]:
    """Return all pages by topic."""
    pages = [page(code) for code in codes()]
    return {
        about: [each for each in pages if each.code.startswith(start)]
        for start, about in GROUPS.items()
    }


def nearest(wrong: str, most: int = 3) -> list[str]:
    """Return the codes most similar to one that does not exist."""
    digits = "".join(re.findall(r"\d", wrong))[:4].rjust(4, "0")
    if f"KG{digits}" in codes():
        return [f"KG{digits}"]

    def distance(code: str) -> tuple[int, int]:
        pairs = zip(digits, code[2:], strict=True)
        return sum(a != b for a, b in pairs), abs(int(digits) - int(code[2:]))

    close = [code for code in codes() if distance(code)[0] <= _NEAR]
    return sorted(close, key=distance)[:most] if digits != _NONE else []
