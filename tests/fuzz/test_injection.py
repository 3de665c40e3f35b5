"""What a comment or a name says stays text: nothing of it is ever code."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.compiler import compile_text
from kerngen.emit.module_name import module_name
from kerngen.source.diagnostic import CompileError
from tests.budget import examples
from tests.fuzz.hostile import PATHS, TEXTS, TURNS, program, programs

SMALL: Final = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }\n"

_WGSL_LINE: Final = re.compile("\r\n|[\n\x0b\x0c\r\x85\u2028\u2029]")
"""What ends a line, and so a comment, in WGSL."""


class _Bare(ast.NodeTransformer):
    """Takes docstrings, and the text that says where a kernel is, out of a module."""

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg == "origin":
            assert isinstance(node.value, ast.Constant)
            assert isinstance(node.value.value, str)
            node.value.value = ""
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
        return node


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def python_code(text: str) -> str:
    """What Python makes of a module, but for its docstrings."""
    return ast.dump(_Bare().visit(ast.parse(text)))


def wgsl_code(text: str) -> str:
    """What WGSL makes of a shader: all but comments."""
    assert "/*" not in re.sub("//.*", "", text)
    lines = (line.partition("//")[0].rstrip() for line in _WGSL_LINE.split(text))
    return "\n".join(filter(None, lines))


def plan_code(text: str) -> str:
    """What a runtime makes of a plan: all but where it is from, and the hash."""
    origins = ("kerngen plan ", "kernel ", "end ")
    lines = (line for line in text.split("\n") if not line.startswith(origins))
    return "\n".join(lines)


_CODE: Final = {".py": python_code, ".wgsl": wgsl_code, ".plan": plan_code}


def code_of(program: str, path: str = "k.kern") -> dict[str, str]:
    compiled = compile_text(program, path)
    return {
        file: _CODE[PurePosixPath(file).suffix](data.decode())
        for file, data in compiled.files.items()
    }


PLAIN: Final = code_of(program("text"))


@pytest.mark.parametrize("turn", TURNS)
def test_comments_change_no_code(turn: int) -> None:
    for hostile in programs(turn):
        assert code_of(hostile) == PLAIN


@settings(max_examples=examples(10))
@given(
    st.lists(
        st.sampled_from([*"\"\\'{}#/*<>&;:.N \t", "a", "\u00e9", '"""']), max_size=12
    )
)
def test_any_comment_changes_no_code(parts: list[str]) -> None:
    assert code_of(program("".join(parts))) == PLAIN


@settings(max_examples=examples(25))
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_any_character_changes_no_code_or_is_refused(text: str) -> None:
    try:
        found = code_of(program(text.replace("\n", " ")))
    except CompileError as error:
        refused = {fault.code for fault in error.diagnostics}
    else:
        refused = {"KG0103"} if found == PLAIN else set[str]()
    assert refused == {"KG0103"}


def test_docstrings_hold_the_text() -> None:
    for line in TEXTS[:5]:
        binding = compile_text(program(line), "k.kern").binding
        (function,) = (
            node
            for node in ast.parse(binding).body
            if isinstance(node, ast.FunctionDef) and node.name == "k"
        )
        assert line.strip() in (ast.get_docstring(function) or "")


@pytest.mark.parametrize("path", PATHS)
def test_the_name_of_a_file_is_no_code(path: str) -> None:
    found = code_of(SMALL, path)
    assert found == code_of(SMALL, f"{module_name(path)}.kern")
