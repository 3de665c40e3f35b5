"""Where comments go: one that has no place of its own moves to the next there is."""

from __future__ import annotations

import pytest

from kerngen.format.form import formatted
from kerngen.source.text import Source

PLACED = {
    "before an item": ("const\n// c\nA: f32 = 1.0;", "// c\nconst A: f32 = 1.0;\n"),
    "before the second item": (
        "use 'a';\nconst\n// c\nB: f32 = 2.0;",
        "use 'a';\n\n// c\nconst B: f32 = 2.0;\n",
    ),
    "before another of its kind": (
        "const A: f32 = 1.0;\nconst\n// c\nB: f32 = 2.0;",
        "const A: f32 = 1.0;\n// c\nconst B: f32 = 2.0;\n",
    ),
    "after the file's words": (
        "//! About.\nconst\n// c\nA: f32 = 1.0;",
        "//! About.\n\n// c\nconst A: f32 = 1.0;\n",
    ),
    "after a name": ("const A // c\n: f32 = 1.0;", "const A: f32 = 1.0; // c\n"),
    "after a type": ("const A: f32 // c\n= 1.0;", "const A: f32 = 1.0; // c\n"),
    "after a sign": ("const A: f32 = // c\n1.0;", "const A: f32 = // c\n    1.0;\n"),
    "after a value": ("const A: f32 = 1.0 // c\n;", "const A: f32 = 1.0; // c\n"),
    "below a value": ("const A: f32 = 1.0\n// c\n;", "const A: f32 = 1.0;\n// c\n"),
    "in a use": ("use // c\n'a';", "use 'a'; // c\n"),
    "before a brace": (
        "kernel f(x: f32[n]) -> y: f32[n] // c\n{ y[i] = x[i]; }",
        "kernel f(x: f32[n]) -> y: f32[n] { // c\n    y[i] = x[i];\n}\n",
    ),
    "below the last parameter": (
        "kernel f(\nx: f32[n]\n// c\n) { x[i] = 1.0; }",
        "kernel f(\n    x: f32[n],\n    // c\n) {\n    x[i] = 1.0;\n}\n",
    ),
    "instead of parameters": ("kernel f( // c\n) {}", "kernel f( // c\n) {}\n"),
    "alone among parameters": ("kernel f(\n//c\n) {}", "kernel f(\n    // c\n) {}\n"),
    "in a body": ("kernel f() {\n\n//c\n\n}", "kernel f() {\n    // c\n}\n"),
    "in a struct": ("struct P { // c\n}", "struct P { // c\n}\n"),
    "with a name like a mark": (
        "//////// \n//\n////x\n//\tc",
        "////////\n//\n////x\n//\tc\n",
    ),
    "between empty lines": (
        "const A: f32 = 1.0;\n\n\n\n// a\n\n\n// b\nconst B: f32 = 1.0;\n\n\n",
        "const A: f32 = 1.0;\n\n// a\n\n// b\nconst B: f32 = 1.0;\n",
    ),
    "at both ends": ("\n\n// a\n\nuse 'a';\n\n// b\n\n", "// a\n\nuse 'a';\n\n// b\n"),
    "at both ends of a body": (
        "kernel f(x: f32[n]) {\n\n// a\n\nx[i] = 1.0;\n\n// b\n\n}",
        "kernel f(x: f32[n]) {\n    // a\n\n    x[i] = 1.0;\n\n    // b\n}\n",
    ),
}
"""What is given, with a file in single quotes, and what it becomes."""

IN_VALUES = {
    "a // c\n + b": "a // c\n    + b",
    "a + // c\n b": "a // c\n    + b",
    "a +\n// c\n b": "a\n    // c\n    + b",
    "a\n// c\n+ b": "a\n    // c\n    + b",
    "g(a, // c\n b)": "g(\n        a, // c\n        b,\n    )",
    "g(a // c\n, b)": "g(\n        a, // c\n        b,\n    )",
    "g(a\n// c\n, b)": "g(\n        a,\n        // c\n        b,\n    )",
    "g(\n// c\na, b)": "g(\n        // c\n        a,\n        b,\n    )",
    "g(a, b\n// c\n)": "g(\n        a,\n        b,\n        // c\n    )",
    "(\n// c\na)": "(\n        // c\n        a\n    )",
    "(a\n// c\n)": "(\n        a\n        // c\n    )",
    "g // c\n(a, b)": "g(a, b) // c",
    "g\n// c\n(a, b)": "g(\n        // c\n        a,\n        b,\n    )",
    "not // c\n a": "not a // c",
    "a // c\n": "a // c",
    "a\n// c\n": "a\n    // c",
}
"""The same of the value of a function."""


def form(text: str) -> str:
    return formatted(Source("a.kern", text.replace("'", '"')))


@pytest.mark.parametrize("case", PLACED)
def test_a_comment_has_its_place(case: str) -> None:
    given, expected = PLACED[case]
    assert form(given) == expected.replace("'", '"')
    assert form(expected) == expected.replace("'", '"')


@pytest.mark.parametrize("given", IN_VALUES)
def test_a_comment_in_a_value_breaks_its_line(given: str) -> None:
    expected = f"fn f(x: f32) -> f32 {{\n    {IN_VALUES[given]}\n}}\n"
    assert form(f"fn f(x: f32) -> f32 {{ {given} }}") == expected
    assert form(expected) == expected
