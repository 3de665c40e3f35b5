"""Panic mode: resume parsing after a syntax error, so that one run reports all errors.

The parser drops the faulty statement or item from its stack, and reads on at a place that
can't be misread: after the `;` of the statement, at a `let`, `host` or `require` of the
same body, or at the next item.  The text that is passed over is a gap.  No error is reported
in it, and a name that the rest of the file can't find may be declared there.

    let t = x[i] + ;          the fault is at the `;`, the statement is dropped
    y[i] = t;                 parsing goes on here; no error, as the gap declares `t`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from lark import Token

from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.lalr import END, Stack, Tables
from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes

_BLOCKS = frozenset({"for", "while", "if", "loop", "switch", "forall", "foreach"})
"""Words of other languages that begin a statement with braces."""

_NAMED = re.compile(r"\b(?:const|struct|fn|kernel)\W+(\w+)")
_STATEMENT = re.compile(r"(?:let|host|require)\s+\w")
_JOINS = frozenset("-.'")
_ITEM_NAME = re.compile(r"\s*[\w\"]")
_WORD = re.compile(r"[A-Za-z_]\w*")

_HEAD = (
    ("KERNEL", "kernel"), ("NAME", "_"), ("OPEN_PAREN", "("), ("CLOSE_PAREN", ")"),
    ("OPEN_BRACE", "{"),
)  # fmt: skip
"""A correct head in the place of a faulty one, so that the kernel's body is read."""


@final
@dataclass(frozen=True, slots=True)
class Resumption:
    """How to resume: the gap, the offset, and tokens to insert before the rest."""

    gap: ast.Gap
    offset: int
    head: tuple[Token, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class _Levels:
    """How many values of a stack are before the item, and before the statement, being read.

    `body` is None outside of a kernel's braces.
    """

    file: int
    body: int | None


def _levels(tables: Tables, stack: Stack) -> _Levels:
    size = len(stack.values)
    # Only a file takes both an item and its end, and only a kernel's body a 'host'.
    file = next(
        at
        for at in range(size, -1, -1)
        if tables.shifts(stack.states[at], "KERNEL")
        and tables.takes(stack.states[at], END)
    )
    inside = range(size, file, -1)
    bodies = (at for at in inside if tables.shifts(stack.states[at], "HOST"))
    return _Levels(file, next(bodies, None))


@final
class _Nesting:
    """The nesting of braces and parentheses at a lexeme, followed from a fault on.

    `block`: the statement is a loop or `if` of another language, with braces of its own.
    """

    def __init__(self, text: str, read: list[Token], statement: int) -> None:
        """Begin after the tokens of an unfinished item, `read`, with a statement's offset."""
        self._text = text
        self._statement = statement
        self._in_kernel = any(token.type == "KERNEL" for token in read)
        self._braces = self._parentheses = 0
        for token in read:
            self._count(token)
        word = _WORD.match(text, statement)
        self.block = word is not None and word[0] in _BLOCKS

    def _count(self, bracket: str) -> None:
        match bracket:
            case "(":
                self._parentheses += 1
            case ")":
                self._parentheses -= 1
            case "{" | "}":
                self._parentheses = 0
                self._braces += 1 if bracket == "{" else -1
            case _:
                pass

    @property
    def in_body(self) -> bool:
        """Whether a statement may start here: in a kernel, and in no braces but its own."""
        return self._in_kernel and self._braces == 1

    @property
    def ends_statement(self) -> bool:
        """Whether a `;` ends a statement here: a loop may have some of its own."""
        return self.in_body and not (self.block and self._parentheses > 0)

    def starts_item(self, lexeme: Lexeme) -> bool:
        """Whether this is an item's keyword, and no misuse as a name: `struct fn {`.

        One at the left margin starts an item even if a brace before it is missing.
        """
        before = self._text[lexeme.start - 1 : lexeme.start] or "\n"
        at_margin = before == "\n"
        at_top = self._braces <= 0 and self._parentheses <= 0 and before not in _JOINS
        names = _ITEM_NAME.match(self._text, lexeme.end) is not None
        return lexeme.text in ITEM_WORDS and (at_margin or (at_top and names))

    def step(self, lexeme: Lexeme) -> None:
        """Take one lexeme into account."""
        if self.in_body and not self._text[self._statement : lexeme.start].strip():
            self.block = lexeme.text in _BLOCKS
        self._count(lexeme.text)
        ends = lexeme.text == ";" and (self._braces == 0 or self.ends_statement)
        if ends:
            self._parentheses = 0
        if self.in_body and (ends or lexeme.text == "{"):
            self._statement = lexeme.end


def resume(
    source: Source, tables: Tables, stack: Stack, fault: int, onward: int | None = None
) -> Resumption:
    """Drop the faulty part from a parser's stack, and return where to resume.

    `onward` is a place at which a statement, or between items an item, may begin.
    """
    text = source.text

    def gap(size: int, start: int, end: int) -> ast.Gap:
        return _gap(Span(source, start, end), fault, stack.values[size:])

    # What of the unfinished item and statement is on the stack.
    levels = _levels(tables, stack)
    tokens = [x for x in stack.values[levels.file :] if isinstance(x, Token)]
    begins = [token.start_pos or 0 for token in tokens]
    item = begins[0] if begins else fault
    body = levels.body
    statement = fault if body is None else next(iter(stack.begins[body:]), fault)
    nesting = _Nesting(text, tokens, statement)
    if onward is not None and body is not None and nesting.in_body:
        return _drop(stack, body, Resumption(gap(body, statement, onward), onward))
    if onward is not None and len(stack.values) == levels.file:
        return Resumption(gap(levels.file, fault, onward), onward)
    found, in_body = _go_on(text, nesting, fault)
    # In the body that is being read: only the statement is dropped.  Else the item is; if
    # its head was faulty, the body is read behind a head that is inserted.
    if in_body and body is not None:
        return _drop(stack, body, Resumption(gap(body, statement, found), found))
    end = _end_of_item(text, _Nesting(text, tokens, statement), fault)
    head = tuple(
        Token(kind, word, start_pos=item, end_pos=item) for kind, word in _HEAD
    )
    after = Resumption(gap(levels.file, item, end), found, head if in_body else ())
    return _drop(stack, levels.file, after)


def _gap(span: Span, fault: int, values: Sequence[object]) -> ast.Gap:
    """Return the gap for a statement or item that the parser has read up to a fault.

    `values` are the statement's on the stack: tokens, and nodes of complete rules.
    """
    read = [x for x in values if not (isinstance(x, Token) and x.startswith("//"))]
    match read:
        case [
            ast.Name() | ast.Subscript() | ast.Member() as target,
            Token(type="ASSIGN" | "ASSIGN_OP"),
            *_,
        ]:
            return ast.Gap(span, fault, "", ast.chain_of(target)[0].span.text)
        case [Token(type="NAME"), *_]:
            # Without its '=', it may be a word of another language: 'return x;'.
            return ast.Gap(span, span.start)
        case [Token() as keyword, Token(type="NAME") as name, *_]:
            return ast.Gap(span, fault, str(keyword), str(name))
        case [Token() as keyword, *_]:
            return ast.Gap(span, fault, str(keyword))
        case _:
            return ast.Gap(span, span.start)


def _drop(stack: Stack, size: int, after: Resumption) -> Resumption:
    """Cut a stack to its first `size` values, and its tokens to the last before the gap.

    `mistake._preceding` walks the tokens back for each error.  If all were kept, many errors
    would take time with the square of their number.
    """
    stack.cut(size)
    while stack.tokens and (stack.tokens[-1].start_pos or 0) >= after.gap.span.start:
        stack.tokens.pop()
    del stack.tokens[:-1]
    return after


def _go_on(text: str, nesting: _Nesting, fault: int) -> tuple[int, bool]:
    """Find the next place that can't be misread, and whether it is in a kernel's body."""
    closed: int | None = None
    for lexeme in lexemes(text, fault):
        if closed is not None and lexeme.text != "else":
            return closed, True
        closed = None
        if nesting.starts_item(lexeme):
            return lexeme.start, False
        if nesting.in_body and _STATEMENT.match(text, lexeme.start):
            return lexeme.start, True
        if nesting.ends_statement and lexeme.text == ";":
            return lexeme.end, True
        nesting.step(lexeme)
        if nesting.block and nesting.in_body and lexeme.text == "}":
            closed = lexeme.end
    return len(text), False


def _end_of_item(text: str, nesting: _Nesting, fault: int) -> int:
    """Return the offset of the first item that begins after a fault."""
    for lexeme in lexemes(text, fault):
        if nesting.starts_item(lexeme):
            return lexeme.start
        nesting.step(lexeme)
    return len(text)


# Gaps, and the names in them


def outermost(gaps: Iterable[ast.Gap]) -> tuple[ast.Gap, ...]:
    """Return the gaps that lie inside no other gap, in order."""
    found: list[ast.Gap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.span.start, -gap.span.end)):
        if not found or gap.span.end > found[-1].span.end:
            found.append(gap)
    return tuple(found)


def words(text: str) -> frozenset[str]:
    """Return the words in a text: names that it may declare."""
    return frozenset(_WORD.findall(text))


def item_names(text: str) -> frozenset[str]:
    """Return the names of the items in a text."""
    code = " ".join(x.text for x in lexemes(text, 0) if not x.text.startswith("//"))
    return frozenset(_NAMED.findall(code))
