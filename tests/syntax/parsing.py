"""Short ways to parse a piece of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.parser import parse

EXAMPLE = (Path(__file__).parent / "example.kern").read_text("utf-8")
"""The example of the language."""


def parse_text(text: str) -> ast.Program:
    return parse(Source("test.kern", text))


def parse_item(text: str) -> ast.Item:
    (item,) = parse_text(text).items
    return item


def parse_statement(text: str) -> ast.Statement:
    item = parse_item(f"kernel k() {{ {text} }}")
    assert isinstance(item, ast.KernelItem)
    (statement,) = item.body
    return statement


def parse_expression(text: str) -> ast.Expr:
    statement = parse_statement(f"host h = {text};")
    assert isinstance(statement, ast.HostStatement)
    return statement.value


def faults_of(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        parse_text(text)
    return caught.value.diagnostics


def codes_of(text: str) -> list[str]:
    return [fault.code for fault in faults_of(text)]
