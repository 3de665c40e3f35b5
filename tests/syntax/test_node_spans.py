"""Spans of nodes: inside the file, inside their parent, and on the text that they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.parser import parse
from tests.budget import examples

from .parsing import EXAMPLE, parse_expression, parse_item, parse_statement
from .programs import expressions, write_expression

blanks = st.sampled_from([" ", "\n", "\t", "\r\n", "  // a comment\n", " "])


def nodes(node: object, parent: Span) -> Iterator[tuple[object, Span, Span]]:
    """Every node with a span, its span and that of the nearest node around it."""
    if isinstance(node, tuple):
        for child in cast("tuple[object, ...]", node):
            yield from nodes(child, parent)
    elif is_dataclass(node):
        span = getattr(node, "span", parent)
        yield node, span, parent
        for field in fields(node):
            if field.name != "span":
                yield from nodes(getattr(node, field.name), span)


def check_spans(program: ast.Program, source: Source) -> None:
    whole = Span(source, 0, len(source.text))
    for node, span, parent in nodes(program, whole):
        assert span.source is source
        assert parent.start <= span.start <= span.end <= parent.end
        if not isinstance(node, ast.Program | ast.Binder):
            assert span.text
            assert span.text == span.text.strip()
        if isinstance(node, ast.Identifier | ast.Name):
            assert span.text == node.name
        elif isinstance(node, ast.Expr):
            assert parse_expression(span.text) == node


def test_spans_of_the_example() -> None:
    source = Source("example.kern", EXAMPLE)
    check_spans(parse(source), source)


@given(expressions, st.lists(blanks, min_size=1, max_size=5))
@settings(max_examples=examples(40))
def test_spans_of_expressions(expr: ast.Expr, between: list[str]) -> None:
    words = write_expression(expr).split(" ")
    blank = [between[i % len(between)] for i in range(len(words))]
    text = "".join(a + b for a, b in zip(words, blank, strict=True))
    source = Source("test.kern", f"const C: f32 = {text};")
    check_spans(parse(source), source)


def test_parentheses_belong_to_the_operation_around_them() -> None:
    product = parse_expression("(a + b) * (c)")
    assert isinstance(product, ast.Binary)
    assert product.span.text == "(a + b) * (c)"
    assert product.left.span.text == "a + b"
    assert product.right.span.text == "c"


def test_items_start_after_their_doc_and_end_with_their_last_token() -> None:
    item = parse_item("/// Doc.\nkernel k(\n  /// A.\n  a: f32[n],\n) {} // end")
    assert isinstance(item, ast.KernelItem)
    assert item.span.text.startswith("kernel k(")
    assert item.span.text.endswith("{}")
    assert item.parameters[0].span.text == "a: f32[n]"
    assert item.parameters[0].type.span.text == "f32[n]"


def test_statements_include_their_semicolon() -> None:
    assert parse_statement("  c[i] =\n x ; ").span.text == "c[i] =\n x ;"
