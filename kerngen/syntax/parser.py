"""Text to the abstract syntax tree.

The grammar is in `grammar.lark`; `transform` makes the syntax tree, `diagnose` words the
errors, `recovery` says where to go on after one.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Protocol

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.utils import TextSlice

from kerngen.source.diagnostic import CompileError, Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.depth import check_depth
from kerngen.syntax.diagnose import Mistake, diagnose, look_around
from kerngen.syntax.faults import ForbiddenCharacter
from kerngen.syntax.recovery import Start, resumption
from kerngen.syntax.transform import tree_to_ast

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\uffff\ud800-\udfff]|\r(?!\n)"
)


def grammar_text() -> str:
    """Return the grammar."""
    return files("kerngen.syntax").joinpath("grammar.lark").read_text("utf-8")


def build_parser(grammar: str, *, debug: bool = False) -> Lark:
    """Build the parser of a grammar; with `debug`, conflicts are logged."""
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=["program", "kernel_rest"],
        propagate_positions=True,
        maybe_placeholders=True,
        debug=debug,
    )


class _Parser(Protocol):
    """The part of lark's interface that is used here, fully typed."""

    def parse(self, text: TextSlice[str], start: str) -> Tree[Token]: ...


@cache
def _parser() -> _Parser:
    return build_parser(grammar_text())


def parse(source: Source) -> ast.Program:
    """Parse one file; raise `CompileError` with every syntax error found."""
    _refuse_forbidden_characters(source)
    faults = Faults()
    program = tree_to_ast(_parse_tree(source), source, faults)
    check_depth(program, faults)
    faults.raise_if_any()
    return program


def _refuse_forbidden_characters(source: Source) -> None:
    """Stop at the first one: a file that has one may well be no text at all."""
    if match := _FORBIDDEN.search(source.text):
        span = Span(source, match.start(), match.end())
        raise CompileError([ForbiddenCharacter(span=span, codepoint=ord(match[0]))])


def _parse_tree(source: Source) -> Tree[Token]:
    """Parse to lark's tree, or collect the errors, going on after each."""
    faults = Faults()
    start: Start | None = Start("program", 0)
    while start:
        rest = TextSlice(source.text, start.offset, len(source.text))
        try:
            tree = _parser().parse(rest, start=start.rule)
        except UnexpectedInput as error:
            mistake = _mistake(source, error, start.offset)
            faults.add(diagnose(mistake))
            start = resumption(source.text, start, mistake.span.start)
        else:
            if not faults:
                return tree
            break
    raise CompileError(faults)


def _mistake(source: Source, error: UnexpectedInput, begin: int) -> Mistake:
    match error:
        case UnexpectedCharacters(pos_in_stream=int(at)):
            return look_around("CHARACTER", Span(source, at, at + 1), (), begin)
        case UnexpectedToken(token=Token(start_pos=int(at), end_pos=int(end)) as token):
            span = Span(source, at, end)
            return look_around(token.type, span, error.accepts, begin)
        case _:
            raise AssertionError(error)
