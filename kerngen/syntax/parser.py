"""Text to the abstract syntax tree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast, faults
from kerngen.syntax.transform import TreeToAst


@cache
def grammar() -> Lark:
    """Return the parser, built on first use."""
    return Lark(
        files("kerngen.syntax").joinpath("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="basic",
        start=["program", "kernel_rest"],
        propagate_positions=True,
        maybe_placeholders=True,
    )


def parse(source: Source) -> ast.Program:
    """Parse one file; raise `CompileError` with every syntax error found."""
    found = Faults()
    try:
        tree = grammar().parse(source.text, start="program")
    except (UnexpectedToken, UnexpectedCharacters) as error:
        raise CompileError([_diagnose(source, error)]) from None
    program = TreeToAst(source, found).transform(tree)
    found.raise_if_any()
    return program


def _diagnose(
    source: Source, error: UnexpectedToken | UnexpectedCharacters
) -> Diagnostic:
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream
        span = Span(source, at, at + 1)
        return faults.UnexpectedCharacter(span=span, character=span.text)
    start, end = error.token.start_pos, error.token.end_pos
    return faults.UnexpectedToken(
        span=Span(source, start or 0, end or 0),
        found=f"'{error.token}'" if error.token else "the end of the file",
        expected=tuple(sorted(error.accepts)),
    )
