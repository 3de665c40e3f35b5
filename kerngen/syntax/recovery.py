"""Where to go on after a syntax error, so that one run reports the errors of a file.

Parsing resumes at places that can't be misread: after the `;` of a faulty statement, at
a `let` or `host` of the same body, or at the next item.  What lies between is passed
over, so that one mistake doesn't cause a second report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from kerngen.syntax.lexemes import Lexeme, lexemes

Rule: TypeAlias = Literal["program", "kernel_rest"]

_ITEMS = frozenset({"use", "const", "struct", "fn", "kernel", "schedule"})


@final
@dataclass(frozen=True, slots=True)
class Start:
    """A rule of the grammar and the offset at which to parse it."""

    rule: Rule
    offset: int


@final
class _Nesting:
    """Follows lexemes through items, braces and parentheses."""

    def __init__(self, text: str, start: Start) -> None:
        self._text = text
        self._braces = 1 if start.rule == "kernel_rest" else 0
        self._parentheses = 0
        self._in_kernel = start.rule == "kernel_rest"

    @property
    def in_body(self) -> bool:
        """Whether a statement may start here: in a kernel, in its own braces alone."""
        return self._in_kernel and self._braces == 1

    def starts_item(self, lexeme: Lexeme) -> bool:
        """Tell an item's keyword from a misuse of it as a name.

        One at the left margin starts an item even if a brace before it is missing.
        """
        at_margin = lexeme.start == 0 or self._text[lexeme.start - 1] == "\n"
        at_top = self._braces <= 0 and self._parentheses <= 0
        return lexeme.text in _ITEMS and (at_margin or at_top)

    def step(self, lexeme: Lexeme) -> None:
        """Take one lexeme into account."""
        if self.starts_item(lexeme):
            self._braces = self._parentheses = 0
            self._in_kernel = lexeme.text == "kernel"
        match lexeme.text:
            case "(":
                self._parentheses += 1
            case ")":
                self._parentheses -= 1
            case "{" | "}":
                self._parentheses = 0
                self._braces += 1 if lexeme.text == "{" else -1
            case ";":
                self._parentheses = 0
            case _:
                pass


def resumption(text: str, start: Start, fault: int) -> Start | None:
    """Find where to go on when parsing from `start` failed at offset `fault`."""
    nesting = _Nesting(text, start)
    for lexeme in lexemes(text, start.offset):
        if lexeme.start < fault:
            nesting.step(lexeme)
            continue
        if nesting.starts_item(lexeme):
            return Start("program", lexeme.start)
        if nesting.in_body and lexeme.text in {"let", "host"}:
            return Start("kernel_rest", lexeme.start)
        if nesting.in_body and lexeme.text == ";":
            return Start("kernel_rest", lexeme.end)
        nesting.step(lexeme)
    return None
