"""What a comment or a name says stays text: nothing of it is ever code."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.compiler import compile_text
from kerngen.emit.module_name import module_name
from kerngen.source.diagnostic import CompileError

PROGRAM: Final = """\
//! {0}
//! {1}

/// {0}
/// {1}
struct S {{
    /// {0}
    a: f32,
    b: vec3f,
}}

/// {0}
fn f(x: f32) -> f32 {{ x * 2.0 }}

/// {0}
///
/// {1}
kernel k(
    /// {0}
    x: f32[n],
    s: S[n],
    /// {1}
    step: f32 = 1.0,
) -> (
    /// {0}
    y: f32[n],
) {{
    // {0}
    host h = 2.0 * step;  // {1}
    y[i] = f(x[i]) * h + s[i].a;
}}
""".replace("(\n    /// {0}\n    y: f32[n],\n)", "\n    /// {0}\n    y: f32[n]\n")

TEXTS: Final = [
    '"""',
    "'''",
    '\\"""',
    '"""\nimport os',
    '""" + __import__("os").system("x") + """',
    '"',
    '""',
    "\\",
    "\\\\",
    '\\\\"',
    '\\\\\\"""',
    "\\N{LATIN SMALL LETTER A}",
    "\\N{",
    "\\x",
    "\\u12",
    "\\U00110000",
    "\\0",
    "{0}",
    "{x!r}",
    "{{",
    "%s %(a)s",
    "*/ fn evil() {} /*",
    "// fn evil() {}",
    "/*",
    "# type: ignore",
    "# coding: utf-7",
    "-*- coding: latin-1 -*-",
    "# fmt: off",
    "noqa",
    "pragma: no cover",
    "</script><script>alert(1)</script>",
    "<!-- -->",
    "]]>",
    ">>> import os",
    "from x import y",
    "@compute",
    "enable f16;",
    "\u00e9\u4e2d\U0001f600",
    "\u00a0",
    "\u3000",
    "e\u0301",
    "\u0301",
    "a" * 5000,
    "a " * 500,
    "`x`",
    "$(x)",
    "Args:",
    "Returns:",
    "    indented",
    ":",
    ".",
    "\t",
    "",
]

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
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and _is_text(
            node.body[0]
        ):
            del node.body[0]
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


def code_of(one: str, other: str, path: str = "k.kern") -> dict[str, str]:
    compiled = compile_text(PROGRAM.format(one, other), path)
    return {
        file: (
            python_code(data.decode())
            if file.endswith(".py")
            else wgsl_code(data.decode())
        )
        for file, data in compiled.files.items()
    }


PLAIN: Final = code_of("text", "text")


@pytest.mark.parametrize("text", TEXTS)
def test_comments_change_no_code(text: str) -> None:
    assert (
        code_of(text.replace("\n", "\n//! "), "text") == PLAIN
        if "\n" not in text
        else True
    )
    assert code_of("text", text.replace("\n", " ")) == PLAIN


@settings(max_examples=30)
@given(
    st.lists(
        st.sampled_from([*"\"\\'{}#/*<>&;:.N \t", "a", "\u00e9", '"""']), max_size=12
    )
)
def test_any_comment_changes_no_code(parts: list[str]) -> None:
    text = "".join(parts)
    assert code_of(text, text) == PLAIN


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_any_character_changes_no_code_or_is_refused(text: str) -> None:
    try:
        found = code_of(text.replace("\n", " "), "text")
    except CompileError as error:
        refused = {fault.code for fault in error.diagnostics}
    else:
        refused = {"KG0103"} if found == PLAIN else set[str]()
    assert refused == {"KG0103"}


def test_docstrings_hold_the_text() -> None:
    for text in TEXTS[:20]:
        line = text.replace("\n", " ")
        binding = compile_text(PROGRAM.format("Text.", line), "k.kern").binding
        (function,) = (
            node
            for node in ast.parse(binding).body
            if isinstance(node, ast.FunctionDef) and node.name == "k"
        )
        assert line.strip() in (ast.get_docstring(function) or "")


PATHS: Final = [
    'a"""b.kern',
    "a\nimport os.kern",
    "a\rb.kern",
    "a\u2028b.kern",
    "a\x0bb.kern",
    "a\x85b.kern",
    "a\\.kern",
    "a\\N{.kern",
    "a {x} %s.kern",
    "a */.kern",
    "# coding: utf-7.kern",
    "\u202e.kern",
]


@pytest.mark.parametrize("path", PATHS)
def test_the_name_of_a_file_is_no_code(path: str) -> None:
    found = code_of("text", "text", path)
    assert found == code_of("text", "text", f"{module_name(path)}.kern")
