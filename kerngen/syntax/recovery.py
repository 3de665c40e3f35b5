"""Where to go on after a syntax error, so that one run reports the errors of a file.

Parsing resumes at places that can't be misread: after the `;` of a faulty statement, at
a `let`, `host` or `require` of the same body, or at the next item.  What is passed over is a gap:
one mistake causes no second report there, and what the rest of the file can't find may
be in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias, final

from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes

Rule: TypeAlias = Literal["program", "kernel_rest"]

_BLOCKS = frozenset({"for", "while", "if", "loop", "switch", "forall", "foreach"})

_NAMED = re.compile(r"\b(?:const|struct|fn|kernel)\W+(\w+)")
_STATEMENT = re.compile(r"(?:let|host|require)\s+\w")
_JOINS = frozenset("-.'")
_ITEM_NAME = re.compile(r"\s*[\w\"]")
_WORD = re.compile(r"[A-Za-z_]\w*")


@final
@dataclass(frozen=True, slots=True)
class Start:
    """A rule of the grammar, the offset at which to parse it, and that of its item."""

    rule: Rule
    offset: int
    item: int


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """The text from one offset to another that was passed over."""

    start: int
    end: int


@final
@dataclass(frozen=True, slots=True)
class Resumption:
    """What is passed over because of an error, and where to go on, if anywhere."""

    gap: Gap
    start: Start | None


@final
class _Nesting:
    """Follows lexemes through items, braces and parentheses.

    `item` and `statement` are the offsets at which those at hand begin; `block` tells
    that the statement is a loop or `if` of another language, which has braces.
    """

    def __init__(self, text: str, start: Start) -> None:
        self._text = text
        self._in_kernel = start.rule == "kernel_rest"
        self._braces = 1 if self._in_kernel else 0
        self._parentheses = 0
        self.item = start.item
        self.statement = start.offset
        self.block = False

    @property
    def in_kernel(self) -> bool:
        """Whether this is inside the braces of a kernel."""
        return self._in_kernel and self._braces >= 1

    @property
    def in_body(self) -> bool:
        """Whether a statement may start here: in a kernel, in its own braces alone."""
        return self._in_kernel and self._braces == 1

    @property
    def ends_statement(self) -> bool:
        """Whether a `;` ends a statement here: a loop may have some of its own."""
        return self.in_body and not (self.block and self._parentheses > 0)

    def starts_item(self, lexeme: Lexeme) -> bool:
        """Tell an item's keyword from a misuse of it as a name, as in `struct fn {`.

        One at the left margin starts an item even if a brace before it is missing.
        """
        before = self._text[lexeme.start - 1 : lexeme.start] or "\n"
        at_margin = before == "\n"
        at_top = self._braces <= 0 and self._parentheses <= 0 and before not in _JOINS
        names = _ITEM_NAME.match(self._text, lexeme.end) is not None
        return lexeme.text in ITEM_WORDS and (at_margin or (at_top and names))

    def step(self, lexeme: Lexeme) -> None:
        """Take one lexeme into account."""
        if self.starts_item(lexeme):
            self._braces = self._parentheses = 0
            self._in_kernel = lexeme.text == "kernel"
            self.item = lexeme.start
        if self.in_body and not self._text[self.statement : lexeme.start].strip():
            self.block = lexeme.text in _BLOCKS
        match lexeme.text:
            case "(":
                self._parentheses += 1
            case ")":
                self._parentheses -= 1
            case "{" | "}":
                self._parentheses = 0
                self._braces += 1 if lexeme.text == "{" else -1
                self._after(lexeme)
            case ";" if self._braces == 0 or self.ends_statement:
                self._parentheses = 0
                self._after(lexeme)
            case _:
                pass

    def _after(self, lexeme: Lexeme) -> None:
        """Begin the next statement or item, if this lexeme ends one."""
        opens_body = lexeme.text == "{" and self.in_body
        if opens_body or (lexeme.text == ";" and self.in_body):
            self.statement = lexeme.end
        if self._braces <= 0:
            self.item = lexeme.end


def resumption(
    text: str, start: Start, fault: int, onward: int | None = None
) -> Resumption:
    """Find where to go on when parsing from `start` failed at offset `fault`.

    `onward` is a place at which a statement, or between items an item, may begin.
    """
    nesting = _Nesting(text, start)
    rest = lexemes(text, start.offset)
    for lexeme in rest:
        if lexeme.start >= fault:
            break
        nesting.step(lexeme)
    else:
        return Resumption(Gap(nesting.item, len(text)), None)
    item, statement, in_kernel = nesting.item, nesting.statement, nesting.in_kernel
    if onward is not None and nesting.in_body:
        return Resumption(Gap(statement, onward), Start("kernel_rest", onward, item))
    if onward is not None and not text[item:fault].strip():
        return Resumption(Gap(fault, onward), Start("program", onward, onward))
    then = _go_on(text, nesting, lexeme, rest)
    if then is not None and then.rule == "kernel_rest" and in_kernel:
        return Resumption(Gap(statement, then.offset), then)
    return Resumption(Gap(item, _end_of_item(text, item, fault)), then)


def _go_on(
    text: str, nesting: _Nesting, fault: Lexeme, rest: Iterator[Lexeme]
) -> Start | None:
    """Find the next place that can't be misread, from the faulty lexeme on."""
    closed: int | None = None
    for lexeme in chain((fault,), rest):
        if closed is not None and lexeme.text != "else":
            return Start("kernel_rest", closed, nesting.item)
        closed = None
        if nesting.starts_item(lexeme):
            return Start("program", lexeme.start, lexeme.start)
        if nesting.in_body and _STATEMENT.match(text, lexeme.start):
            return Start("kernel_rest", lexeme.start, nesting.item)
        if nesting.ends_statement and lexeme.text == ";":
            return Start("kernel_rest", lexeme.end, nesting.item)
        nesting.step(lexeme)
        if nesting.block and nesting.in_body and lexeme.text == "}":
            closed = lexeme.end
    return None


def _end_of_item(text: str, item: int, fault: int) -> int:
    """Return the offset of the first item that begins after a fault in `item`."""
    nesting = _Nesting(text, Start("program", item, item))
    for lexeme in lexemes(text, item):
        if lexeme.start >= fault and nesting.starts_item(lexeme):
            return lexeme.start
        nesting.step(lexeme)
    return len(text)


# What the gaps hold


def outermost(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return the gaps, in order, that lie inside no other."""
    found: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.start, -gap.end)):
        if not found or gap.end > found[-1].end:
            found.append(gap)
    return tuple(found)


def without_gaps(text: str, gaps: Iterable[Gap]) -> str:
    """Return a text with blanks for its gaps and doc comments, all else in place."""
    docs = (
        Gap(lexeme.start, lexeme.end)
        for lexeme in lexemes(text, 0)
        if lexeme.text.startswith("//")
    )
    characters = list(text)
    for gap in (*gaps, *docs):
        for at in range(gap.start, gap.end):
            if characters[at] != "\n":
                characters[at] = " "
    return "".join(characters)


def words(text: str) -> frozenset[str]:
    """Return the words of a gap within an item: names that it may introduce."""
    return frozenset(_WORD.findall(text))


def item_names(text: str) -> frozenset[str]:
    """Return the names of the items of a gap and, if it has none such, its words."""
    code = " ".join(x.text for x in lexemes(text, 0) if not x.text.startswith("//"))
    return frozenset(_NAMED.findall(code)) or words(code)
