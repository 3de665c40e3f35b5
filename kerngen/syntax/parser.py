"""The parser: from text to the syntax tree.

The grammar is in `grammar.lark`; `lalr` runs its tables, `transform` makes the nodes of the
tree, `diagnose` turns an error into a diagnostic, `recovery` finds where to go on after one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import chain, takewhile
from pathlib import Path
from typing import cast

from lark import Lark

from kerngen import __version__
from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.depth import split_by_depth
from kerngen.syntax.faults import (
    DivisionComment,
    ForbiddenCharacter,
    MisplacedDoc,
    MisplacedFileDoc,
    MissingSemicolon,
)
from kerngen.syntax.lalr import END, Tables, UnexpectedError
from kerngen.syntax.lexemes import lexemes
from kerngen.syntax.mistakes.diagnose import diagnose
from kerngen.syntax.mistakes.mistake import Mistake, find_mistake
from kerngen.syntax.recovery import outermost, resume
from kerngen.syntax.transform import GrammarActions

# Control characters other than tab and line feed; characters that are invisible or change
# the direction of writing; lone surrogates; a carriage return without a line feed.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\uffff\ud800-\udfff]|\r(?!\n)"
)


def grammar_text() -> str:
    """Return the text of the grammar."""
    return files("kerngen.syntax").joinpath("grammar.lark").read_text("utf-8")


def build_parser(
    grammar: str, *, cache: Path | None = None, debug: bool = False
) -> Lark:
    """Build the parser of a grammar; with `debug`, conflicts are logged.

    lark stores the parser in the file `cache`, for the next process.  It makes it again for
    another grammar, other options, another lark or Python, and if the file is damaged.
    """
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=["program"],
        maybe_placeholders=True,
        cache=str(cache) if cache else False,
        debug=debug,
    )


@cache
def _tables() -> Tables:
    """Return the tables of the grammar.

    An archive of kerngen may have them, packed with the grammar by `tools/precompile.mjs`.
    Else lark makes them in 0.2 s, a fifth of a short command, or reads them from the
    user's cache in 0.02 s.
    """
    packed = files("kerngen.syntax").joinpath("grammar.tables")
    if not packed.is_file():
        return Tables(build_parser(grammar_text(), cache=_cache_file()))
    with packed.open("rb") as file:
        lark = Lark.load(file)  # pyright: ignore[reportUnknownMemberType]  # untyped
    return Tables(lark)


def _cache_file() -> Path | None:
    """Return the file in the user's cache for the parser, or None if there can't be one."""
    # A page in a browser has the tables, and no platformdirs.
    from platformdirs import user_cache_path  # noqa: PLC0415

    folder = user_cache_path("kerngen")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / f"parser-{__version__}-{sys.implementation.cache_tag}"


def parse(source: Source) -> ast.Program:
    """Parse one file; raise `CompileError` with every syntax error found."""
    program = read(source)
    if program.faults:
        raise CompileError(program.faults)
    return program


def read(source: Source) -> ast.Program:
    """Parse a file as far as possible, and collect its syntax errors in the tree.

    Parts without syntax errors are checked, so that one run reports all errors of a
    file.
    """
    _refuse_forbidden_characters(source)
    faults = Faults()
    program, gaps = _parsed(source, faults)
    items, deep = split_by_depth(program.items, faults)
    return replace(
        program,
        items=items,
        faults=faults.in_order(),
        gaps=(*gaps, *(ast.Gap(item.span, item.span.start) for item in deep)),
    )


def _refuse_forbidden_characters(source: Source) -> None:
    """Raise `CompileError` for the first one alone: such a file may be no text at all."""
    if match := _FORBIDDEN.search(source.text):
        span = Span(source, match.start(), match.end())
        raise CompileError([ForbiddenCharacter(span=span, codepoint=ord(match[0]))])


def _parsed(source: Source, faults: Faults) -> tuple[ast.Program, tuple[ast.Gap, ...]]:
    """Parse a file; return its program, and the gaps that were passed over after errors."""
    tables, found, gaps = _tables(), Faults(), list[ast.Gap]()
    make = GrammarActions(source, found).make
    text, stack, begin = source.parsed_text, tables.begin(), 0
    tokens = tables.tokens(text)
    while True:
        try:
            program = cast("ast.Program", tables.parse(tokens, make, stack))
            break
        except UnexpectedError as error:
            mistake = find_mistake(source, error, begin)
            fault = diagnose(mistake)
            faults.add(fault)
            tables.complete(stack, make)
            onward = _onward(mistake, fault)
            # At the end of a file, a mistake has its place behind the last token.
            at = len(source.text) if mistake.kind == END else mistake.span.start
            after = resume(source, tables, stack, at, onward)
            gaps.append(after.gap)
            begin = after.offset
            tokens = chain(after.head, tables.tokens(text, begin))
    left = outermost(gaps)
    for fault in found:
        if not _is_in(left, fault.span):
            faults.add(fault)
    # A kernel whose head is faulty was read for the faults of its body.
    items = tuple(item for item in program.items if not _is_in(left, item.span))
    return replace(program, items=items), left


def _is_in(gaps: tuple[ast.Gap, ...], span: Span) -> bool:
    """Whether a span begins in a gap."""
    return any(gap.span.start <= span.start < gap.span.end for gap in gaps)


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
