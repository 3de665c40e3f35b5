"""Text to the abstract syntax tree.

The grammar is in `grammar.lark`; `transform` makes the syntax tree, `diagnose` words the
errors, `recovery` says where to go on after one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Protocol

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.utils import TextSlice

from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.depth import split_by_depth
from kerngen.syntax.diagnose import diagnose
from kerngen.syntax.faults import ForbiddenCharacter, MisplacedDoc, MisplacedFileDoc
from kerngen.syntax.habits import DivisionComment, MissingSemicolon
from kerngen.syntax.mistake import Mistake, look_around
from kerngen.syntax.recovery import Gap, Start, outermost, resumption, without_gaps
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
    program = read(source)
    if program.faults:
        raise CompileError(program.faults)
    return program


def read(source: Source) -> ast.Program:
    """Parse one file as far as it can be; the program tells what could not.

    What could is checked all the same, so that one run reports the faults of a file.
    """
    _refuse_forbidden_characters(source)
    faults = Faults()
    tree, gaps = _parse_tree(source, faults)
    if tree is None:
        return ast.Program(
            "", (), faults.in_order(), (Span(source, 0, len(source.text)),)
        )
    program = tree_to_ast(tree, source, faults)
    items, deep = split_by_depth(program.items, faults)
    passed_over = (Span(source, gap.start, gap.end) for gap in gaps)
    return replace(
        program,
        items=items,
        faults=faults.in_order(),
        gaps=(*passed_over, *(item.span for item in deep)),
    )


def _refuse_forbidden_characters(source: Source) -> None:
    """Stop at the first one: a file that has one may well be no text at all."""
    if match := _FORBIDDEN.search(source.text):
        span = Span(source, match.start(), match.end())
        raise CompileError([ForbiddenCharacter(span=span, codepoint=ord(match[0]))])


def _parse_tree(
    source: Source, faults: Faults
) -> tuple[Tree[Token] | None, tuple[Gap, ...]]:
    """Parse to lark's tree; after an error go on, and leave a gap in the tree."""
    gaps: list[Gap] = []
    start: Start | None = Start("program", 0, 0)
    while start:
        parsed = _attempt(source, source.text, start)
        if isinstance(parsed, Tree):
            if not gaps:
                return parsed, ()
            break
        fault = diagnose(parsed)
        faults.add(fault)
        onward = _onward(parsed, fault)
        after = resumption(source.text, start, parsed.span.start, onward)
        gaps.append(after.gap)
        start = after.start
    readable = without_gaps(source.text, gaps)
    rest = _attempt(source, readable, Start("program", 0, 0))
    return (rest if isinstance(rest, Tree) else None), outermost(gaps)


def _attempt(source: Source, text: str, start: Start) -> Tree[Token] | Mistake:
    rest = TextSlice(text, start.offset, len(text))
    try:
        return _parser().parse(rest, start=start.rule)
    except UnexpectedInput as error:
        return _mistake(source, error, start.offset)


def _onward(mistake: Mistake, fault: Diagnostic) -> int | None:
    """Return where a statement or item may begin right after a mistake, if one may."""
    match fault:
        case MissingSemicolon() | DivisionComment() if mistake.kind in {
            "NAME",
            "LET",
            "HOST",
        }:
            return mistake.span.start
        case MisplacedDoc() | MisplacedFileDoc() if mistake.starts_statement:
            return fault.span.end
        case _:
            return None


def _mistake(source: Source, error: UnexpectedInput, begin: int) -> Mistake:
    match error:
        case UnexpectedCharacters(pos_in_stream=int(at)):
            return look_around("CHARACTER", Span(source, at, at + 1), (), begin)
        case UnexpectedToken(token=Token(type="$END")):
            end = len(source.text)
            return look_around("$END", Span(source, end, end), error.accepts, begin)
        case UnexpectedToken(token=Token(start_pos=int(at), end_pos=int(end)) as token):
            span = Span(source, at, end)
            return look_around(token.type, span, error.accepts, begin)
        case _:
            raise AssertionError(error)
