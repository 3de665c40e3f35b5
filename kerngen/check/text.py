"""The user's source text on one line, for comments and docstrings of the output."""

from __future__ import annotations

import re

from kerngen.source.text import COMMENT, Span, collapse
from kerngen.syntax import ast


def identifiers_in(span: Span) -> frozenset[str]:
    """Return every identifier in a span, comments left out."""
    return frozenset(re.findall(r"\w+", COMMENT.sub("", span.text)))


def statement_text(statement: ast.Statement) -> str:
    """Return a statement on one line, with its semicolon."""
    return statement.span.collapsed.rstrip("; ") + ";"


def signature_text(item: ast.KernelItem) -> str:
    """Return a kernel's text up to its body, on one line."""
    spans = [item.name.span, *(p.span for p in (*item.parameters, *item.outputs))]
    last = spans[-1]
    text = item.span.text
    start = text.index("kernel")
    head = collapse(text[start : text.index("{", last.end - item.span.start)])
    return head.removesuffix(",")
