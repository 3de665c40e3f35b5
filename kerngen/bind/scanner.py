"""The tokenizer of WGSL declarations; function bodies are single tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, NoReturn, final

from kerngen.bind.faults import (
    FileOfAnotherTool,
    UnclosedBody,
    UnclosedComment,
    UnexpectedWgslCharacter,
)
from kerngen.bind.foreign import foreign_tool
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source, Span

_LEXEME: Final = re.compile(
    r"""(?P<space>[\s\u200e\u200f]+|//[^\n\v\f\r\x85\u2028\u2029]*)
    |(?P<comment>/\*)
    |(?P<name>[^\W\d]\w*)
    |(?P<number>0[xX][\da-fA-F]*\.?[\da-fA-F]*(?:[pP][+-]?\d+)?(?:[iufh]|li|lu)?
        |(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:[iufh]|l[iuf])?)
    |(?P<mark>->|&&|\|\||\+\+|--|[-+*/%&|^]=|.)""",
    re.VERBOSE,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")

_KEYWORDS: Final = frozenset(
    "enable requires diagnostic struct fn var const override alias const_assert "
    "true false".split()
)
_WESL: Final = frozenset(("if", "elif", "else"))
"""Attributes of WESL, a language on top of WGSL."""

_SPACES: Final = frozenset(("function", "private", "workgroup"))
"""Address spaces that come before a variable's name."""

_MARKS: Final = {
    ";": "_SEMICOLON",
    ",": "_COMMA",
    ":": "_COLON",
    "=": "_EQUALS",
    "->": "_ARROW",
    "@": "_AT",
    "(": "_LEFT_PAREN",
    ")": "_RIGHT_PAREN",
    "{": "_LEFT_BRACE",
    "}": "_RIGHT_BRACE",
    "[": "LEFT_BRACKET",
    "]": "RIGHT_BRACKET",
    ".": "DOT",
    "-": "MINUS",
    "*": "STAR",
    "&": "AMPERSAND",
    "!": "NOT",
    "~": "TILDE",
}
"""The terminals of marks; all other marks are OPERATOR, an operator between two values."""

_OTHERS: Final = {"{": frozenset("{%$#"), ":": frozenset(":")}
"""Characters that follow a mark in files of other tools: `{{ name }}`, `{% if %}`, `a::b`.

Only two braces may also be WGSL: two blocks that begin.
"""

_DOUBLED: Final = frozenset(("<<", ">>", "<=", ">=", "==", "!="))
"""Operators that the scanner joins after it has found the template lists."""


@final
@dataclass(slots=True)
class WgslToken:
    """A token: its terminal in the grammar, its text and its offsets."""

    kind: str
    text: str
    start: int
    end: int


def scan(source: Source) -> list[WgslToken]:
    """Return the tokens of a file's declarations.

    A function's body is a single token BODY, whose text is the names in it that it does
    not declare; words such as 'let' are among them. A name that is used other than by a
    call is followed by its offset:

        fn f() { let r = radius; store(r * 2.0); }      BODY "let:9 radius:17 store"

    Raises `CompileError` where no token of WGSL begins.
    """
    lexemes: list[WgslToken] = []
    raw = _raw(source)
    is_function = False
    for lexeme in raw:
        begins_body = is_function and lexeme.text == "{"
        is_function = lexeme.kind == "FN" or (is_function and not begins_body)
        lexemes.append(_body(source, lexeme, raw) if begins_body else lexeme)
    _find_templates(lexemes)
    return _joined(lexemes)


def _raw(source: Source) -> Iterator[WgslToken]:
    """Yield the tokens; each '<' and '>' is one of its own, also in '<<' and '>='."""
    text, at, end = source.text, 0, len(source.text)
    match = _LEXEME.match
    after_at = False
    while at < end:
        found = match(text, at)
        if found is None:
            raise _strange(source, at)
        kind, start, at = found.lastgroup, at, found.end()
        if kind == "space":
            continue
        if kind == "comment":
            at = _comment_end(source, start)
            continue
        word = found[0]
        if kind == "name":
            if after_at and word in _WESL:
                _refuse(source, start - 1, f"@{word}", "WESL")
            if word == "import":  # a reserved word
                _refuse(source, start, word, "WESL")
            shown = word.upper() if word in _KEYWORDS else "NAME"
            shown = "ATTRIBUTE" if after_at else shown
        elif kind == "number":
            shown = "NUMBER"
        else:
            if word in "#$`\"'\\?" or text[at : at + 1] in _OTHERS.get(word, ()):
                _refuse_foreign(source, start)
            shown = _MARKS.get(word, "OPERATOR")
        after_at = word == "@"
        yield WgslToken(shown, word, start, at)


def _comment_end(source: Source, start: int) -> int:
    """Return the end of a block comment, in which others may be nested."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise CompileError([UnclosedComment(span=Span(source, start, start + 2))])


def _refuse_foreign(source: Source, start: int) -> None:
    """Raise if the text is a preprocessor's; '{{' may also be two blocks of WGSL."""
    line = source.text[start:].partition("\n")[0]
    tool = foreign_tool(line)
    if tool is not None:
        _refuse(source, start, tool.found, tool.name)
    if not line.startswith("{"):
        raise _strange(source, start)


def _refuse(source: Source, start: int, found: str, tool: str) -> NoReturn:
    span = Span(source, start, start + len(found))
    raise CompileError([FileOfAnotherTool(span=span, found=found, tool=tool)])


def _strange(source: Source, start: int) -> CompileError:
    span = Span(source, start, start + 1)
    return CompileError([UnexpectedWgslCharacter(span=span, character=span.text)])


def _body(source: Source, first: WgslToken, rest: Iterator[WgslToken]) -> WgslToken:
    """Return the token of a body, which ends at the brace that closes `first`."""
    names = _Names()
    for lexeme in rest:
        names.see(lexeme)
        if names.is_whole:
            return WgslToken("BODY", str(names), first.start, lexeme.end)
    span = Span(source, first.start, first.end)
    raise CompileError([UnclosedBody(span=span)])


@final
class _Names:
    """The names in a body, without those of members, attributes and local variables.

    A name is local from the end of its declaration to the end of its block: in
    `let x = x + 1;` the second `x` is the module's.

    `_scopes` are the local names of the blocks that are open, and `_declared` those of
    the declaration that is not at its ';' yet. A `for` opens a scope for its variable
    around that of its block; `_loops` are the depths of these.
    """

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._scopes: list[set[str]] = [set()]
        self._loops: list[int] = []
        self._before = WgslToken("", "", 0, 0)
        self._name: WgslToken | None = None
        self._declares = self._in_attribute = False
        self._declared: set[str] = set()

    def __str__(self) -> str:
        return " ".join(f"{name}{place}" for name, place in self._found.items())

    @property
    def is_whole(self) -> bool:
        """Whether the last brace was that of the body."""
        return not self._scopes

    def see(self, lexeme: WgslToken) -> None:
        """Take the next token."""
        before, self._before = self._before, lexeme
        # The name before this token, if it is free: without a '(' it is no call.
        name, self._name = self._name, None
        if name is not None and lexeme.text != "(":
            self._found[name.text] = self._found[name.text] or f":{name.start}"
        if before.kind == "ATTRIBUTE":
            self._in_attribute = lexeme.text == "("
        if lexeme.kind == "NAME":
            if before.text != "." and not self._in_attribute:
                self._see_name(lexeme)
        else:
            self._declares |= lexeme.kind in {"VAR", "CONST"}
            self._see_mark(lexeme.text)

    def _see_name(self, lexeme: WgslToken) -> None:
        text = lexeme.text
        if text == "for":
            self._scopes.append(set())
            self._loops.append(len(self._scopes))
        if self._declares and text not in _SPACES:
            self._declared.add(text)
            self._declares = False
        elif not any(text in scope for scope in self._scopes):
            self._found.setdefault(text, "")
            self._name = lexeme
            self._declares |= text == "let"

    def _see_mark(self, mark: str) -> None:
        match mark:
            case ")":
                self._in_attribute = False
            case ";":
                self._scopes[-1] |= self._declared
                self._declared.clear()
            case "{":
                self._scopes.append(set())
            case "}":
                self._scopes.pop()
                if self._loops and self._loops[-1] == len(self._scopes):
                    self._loops.pop()
                    self._scopes.pop()
            case _:
                pass


def _find_templates(lexemes: list[WgslToken]) -> None:
    """Mark the '<' and '>' of template lists as OPEN and CLOSE, by WGSL's own algorithm.

    It is in section 3.9 of the specification: a '<' behind a name begins a template list
    if its '>' comes before any token that can't be in one.

        array<vec2<f32>, N>      both lists       if a < b && c > d      ended by '&&': none

    `pending` are the '<' that are not matched yet, each with its depth in parentheses.
    """
    pending: list[tuple[WgslToken, int]] = []
    depth = 0
    before = WgslToken("", "", 0, 0)
    for lexeme, after in zip_longest(lexemes, lexemes[1:], fillvalue=before):
        text = lexeme.text if lexeme.kind not in {"NAME", "BODY"} else ""
        adjacent = after.text if after.start == lexeme.end else ""
        if (
            text == "<"
            and before.kind in {"NAME", "VAR"}
            and adjacent not in {"<", "="}
        ):
            pending.append((lexeme, depth))
        elif text == ">" and pending and pending[-1][1] == depth:
            pending.pop()[0].kind = "OPEN"
            lexeme.kind = "CLOSE"
        elif text in {"(", "["}:
            depth += 1
        elif text in {")", "]"}:
            while pending and pending[-1][1] >= depth:
                pending.pop()
            depth = max(0, depth - 1)
        elif text in {";", "{", "}", ":"} or lexeme.kind == "BODY":
            depth = 0
            pending.clear()
        elif text in {"&&", "||"}:
            while pending and pending[-1][1] >= depth:
                pending.pop()
        before = lexeme


def _joined(lexemes: list[WgslToken]) -> list[WgslToken]:
    """Return the tokens, with '<' and '=' that are one operator joined again to '<='."""
    joined: list[WgslToken] = []
    for lexeme in lexemes:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.end == lexeme.start
            and last.text + lexeme.text in _DOUBLED
            and not {last.kind, lexeme.kind} & {"OPEN", "CLOSE"}
        ):
            last.kind, last.text = "OPERATOR", last.text + lexeme.text
            last.end = lexeme.end
        else:
            joined.append(lexeme)
    return joined
