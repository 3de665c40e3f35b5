"""The canonical form of a file, with a check that its meaning stays the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import final

from kerngen.format.comments import Gaps, split_comments
from kerngen.format.items import program
from kerngen.format.printer import print_document
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax.ast import Program
from kerngen.syntax.concrete import concrete
from kerngen.syntax.depth import deep_recursion
from kerngen.syntax.parser import parse


@final
class FormatterError(Exception):
    """Raised if formatting would change a file's meaning: a bug of kerngen."""


def formatted(source: Source) -> str:
    """Return the canonical form of a file, with the line ends that its first line has.

    Raises `CompileError` if its syntax is wrong.
    """
    said = parse(source)
    with deep_recursion():
        form = _lay_out(source)
        if form.text != source.text.replace("\r\n", "\n"):
            _prove(form, replace(source, text=form.text), said)
    return form.text.replace("\n", "\r\n") if _has_crlf(source.text) else form.text


def _prove(form: _Form, after: Source, said: Program) -> None:
    """Check that a form parses to the same tree, keeps all comments, and is canonical.

    Raises `FormatterError` if not: a formatted file is never written unproven.
    """
    try:
        says = parse(after)
    except CompileError as error:
        raise FormatterError(f"Formatting '{after.path}' would break it.") from error
    again = _lay_out(after)
    if says != said or again.comments != form.comments:
        raise FormatterError(f"Formatting '{after.path}' would change it.")
    if again.text != form.text:
        raise FormatterError(f"Formatting '{after.path}' twice changes it.")


@final
@dataclass(frozen=True, slots=True)
class _Form:
    """The canonical form of a text, and the comments in it."""

    text: str
    comments: tuple[str, ...]


def _lay_out(source: Source) -> _Form:
    """Return the canonical form of a text; raise `FormatterError` if a token is lost."""
    parsed = concrete(source)
    tokens, found = split_comments(source.text, parsed.lexemes)
    document = program(parsed.tree)
    gaps = Gaps(document)
    if len(gaps.tokens) != len(tokens):
        raise FormatterError(f"Formatting '{source.path}' would lose a token.")
    text = print_document(document, gaps, gaps.place(found))
    remarks = (remark for gap in found.values() for remark in gap.comments)
    return _Form(text, tuple(remark.text for remark in remarks))


def _has_crlf(text: str) -> bool:
    first = re.search(r"\r?\n", text)
    return first is not None and first[0] == "\r\n"
