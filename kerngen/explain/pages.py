"""The pages of `kerngen explain`, by code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

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


# One page: a title that holds the rule, what it means, a wrong and a right example.
#
# # KG0108: Comparisons are not chained.
#
# Why the language asks for it.
#
# ## Wrong
#
# A program in a block of its own, and below it what the compiler prints.
#
# ## Right
#
# The same program, put right.


_QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")


@final
@dataclass(frozen=True, slots=True)
class Page:
    """The explanation of a code, in Markdown."""

    code: str
    text: str

    @property
    def rule(self) -> str:
        """The rule, as diagnostics word it."""
        title = self.text.partition("\n")[0]
        return title.removeprefix(f"# {self.code}: ").replace("`", "'")


def title(code: str, rule: str) -> str:
    """Return the title line of a code's page."""
    return f"# {code}: {code_spans(rule)}"


def code_spans(text: str) -> str:
    """Return a diagnostic's text as Markdown, with code in backquotes."""
    return _QUOTED.sub(r"`\1`", text)
