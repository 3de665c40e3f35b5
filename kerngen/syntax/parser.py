"""Text to the abstract syntax tree.

The grammar is in `grammar.lark`; `transform` makes the syntax tree, `diagnose` words the
errors, `recovery` says where to go on after one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import cast

from lark import Lark
from lark.exceptions import UnexpectedCharacters

from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.depth import split_by_depth
from kerngen.syntax.diagnose import diagnose
from kerngen.syntax.faults import ForbiddenCharacter, MisplacedDoc, MisplacedFileDoc
from kerngen.syntax.habits import DivisionComment, MissingSemicolon
from kerngen.syntax.lalr import END, Make, Tables, UnexpectedError, nothing
from kerngen.syntax.lexemes import lexemes
from kerngen.syntax.mistake import Mistake, look_around
from kerngen.syntax.recovery import Gap, Start, outermost, resumption, without_gaps
from kerngen.syntax.transform import Rules

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
        maybe_placeholders=True,
        debug=debug,
    )


@cache
def _tables() -> Tables:
    return Tables(build_parser(grammar_text()))


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
    program, gaps = _parsed(source, faults)
    if program is None:
        return ast.Program(
            "", (), faults.in_order(), (Span(source, 0, len(source.text)),)
        )
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


def _parsed(
    source: Source, faults: Faults
) -> tuple[ast.Program | None, tuple[Gap, ...]]:
    """Parse a file; after an error go on, and leave a gap in the program."""
    program = _whole(source, source.text, faults)
    if isinstance(program, ast.Program):
        return program, ()
    mistake, start, gaps = program, Start("program", 0, 0), list[Gap]()
    while isinstance(mistake, Mistake):
        fault = diagnose(mistake)
        faults.add(fault)
        onward = _onward(mistake, fault)
        after = resumption(source.text, start, mistake.span.start, onward)
        gaps.append(after.gap)
        if after.start is None:
            break
        start = after.start
        mistake = _attempt(source, source.text, start, nothing)
    rest = _whole(source, without_gaps(source.text, gaps), faults)
    return (rest if isinstance(rest, ast.Program) else None), outermost(gaps)


def _whole(source: Source, text: str, faults: Faults) -> object:
    """Return the program, or the first mistake in it; `text` has blanks for the gaps."""
    found = Faults()
    start = Start("program", 0, 0)
    program = _attempt(source, text, start, Rules(source, found).make)
    if isinstance(program, ast.Program):
        for fault in found:
            faults.add(fault)
    return program


def _attempt(source: Source, text: str, start: Start, make: Make) -> object:
    tables = _tables()
    try:
        return tables.parse(tables.tokens(text, start.offset), start.rule, make)
    except (UnexpectedCharacters, UnexpectedError) as error:
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
            return _end_of_docs(fault.span)
        case _:
            return None


def _end_of_docs(first: Span) -> int:
    """Return where the doc comments end that follow one another from the first on."""
    docs = takewhile(
        lambda lexeme: lexeme.text.startswith("//"),
        lexemes(first.source.text, first.start),
    )
    return max(lexeme.end for lexeme in docs)


def _mistake(
    source: Source, error: UnexpectedCharacters | UnexpectedError, begin: int
) -> Mistake:
    if isinstance(error, UnexpectedCharacters):
        at = cast("int", error.pos_in_stream)
        return look_around("CHARACTER", Span(source, at, at + 1), (), begin)
    token = error.token
    if token is None:
        end = Span(source, len(source.text), len(source.text))
        return look_around(END, end, error.accepts, begin)
    span = Span(source, cast("int", token.start_pos), cast("int", token.end_pos))
    return look_around(token.type, span, error.accepts, begin)
