"""One page: a title that holds the rule, what it means, a wrong and a right example.

# KG0108: Comparisons are not chained.

Why the language asks for it.

## Wrong

A program in a block of its own, and below it what the compiler prints.

## Right

The same program, put right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

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
