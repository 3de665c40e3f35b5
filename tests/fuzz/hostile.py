"""Texts and names of files that would be code somewhere, if they were not kept text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

TEXTS: Final = [
    '"""',
    "'''",
    '\\"""',
    '""" import os',
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
    '<img src=x onerror="alert(1)">',
    "</pre></div><b>",
    "'><b onclick='x",
    "&lt;b&gt; &amp; &#60;",
    "<![CDATA[ <b> ]]>",
    "<!DOCTYPE x [<!ENTITY e 'e'>]> &e;",
    "<textarea><title><style>",
    "[bold]x[/bold] [/] [link=x]",
    "\\u2028\\u003cb\\u003e",
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
"""What a line of a comment may hold."""

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
    "<img src=x onerror=alert(1)>.kern",
    "\"'><b>&amp;.kern",
    "]]>-->.kern",
    "[bold]x[red].kern",
]
"""What a file may be called."""

_PROGRAM: Final = """\
//! {}
//! {}

/// {}
/// {}
struct S {{
    /// {}
    a: f32,
    b: vec3f,
}}

/// {}
fn f(x: f32) -> f32 {{ x * 2.0 }}

/// {}
///
/// {}
kernel k(
    /// {}
    x: f32[n],
    s: S[n],
    /// {}
    step: f32 = 1.0,
) ->
    /// {}
    y: f32[n]
{{
    // {}
    host h = 2.0 * step;  // {}
    y[i] = f(x[i]) * h + s[i].a;
}}
"""
"""A program with every kind of comment."""

_PLACES: Final = _PROGRAM.count("{}")

TURNS: Final = [
    pytest.param(turn, marks=pytest.mark.nightly if turn else ())
    for turn in range(_PLACES)
]
"""In all turns together, each text stands once in each place."""


def program(*texts: str) -> str:
    """Return the program with a text in each place, or one text in all."""
    return _PROGRAM.format(*(texts * _PLACES)[:_PLACES])


def programs(turn: int) -> Iterator[str]:
    """Yield programs that hold all texts, one in each place."""
    for start in range(turn, turn + len(TEXTS), _PLACES):
        places = range(start, start + _PLACES)
        yield program(*(TEXTS[place % len(TEXTS)] for place in places))
