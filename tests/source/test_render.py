"""Diagnostics as text: what is printed stands under what it is about."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.source.cells import width
from kerngen.source.diagnostic import CompileError, Diagnostic, Faults, Related
from kerngen.source.render import render, to_json
from kerngen.source.text import Source, Span


class Sample(Diagnostic, code="KG9999"):
    MESSAGE = "{says}"
    LABEL = "{marks}"
    says: str = "Wrong."
    marks: str = ""
    near: tuple[Related, ...] = ()
    remedy: str = ""

    @property
    def related(self) -> tuple[Related, ...]:
        return self.near


def span(source: Source, text: str, nth: int = 0) -> Span:
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(text, start + 1)
    return Span(source, start, start + len(text))


def check(diagnostic: Diagnostic, expected: str) -> None:
    assert render([diagnostic]) == dedent(expected).lstrip("\n")


def test_everything_at_once() -> None:
    source = Source("dir/a.kern", "one two\n\nthree one\nfour\nfive\n" * 3)
    other = Source("b.kern", "\n  six\n")
    check(
        Sample(
            span=span(source, "three", 1),
            marks="here",
            near=(
                Related(span(source, "one", 0), "first"),
                Related(span(source, "one", 3), "same line"),
                Related(span(other, "six"), "elsewhere"),
                Related(span(source, "four", 1), "next line"),
            ),
            remedy="Do this.",
        ),
        """
        error[KG9999]: Wrong.
         --> dir/a.kern:8:1
          |
        1 | one two
          | --- first
        ...
        8 | three one
          | ^^^^^ here
          |       --- same line
        9 | four
          | ---- next line
          |
         ::: b.kern:2:3
          |
        2 |   six
          |   --- elsewhere
          |
          = hint: Do this.
        """,
    )


def test_the_gutter_fits_the_largest_number() -> None:
    source = Source("a.kern", "x\n" * 100)
    check(
        Sample(
            span=Span(source, 198, 199), near=(Related(Span(source, 6, 7), "before"),)
        ),
        """
        error[KG9999]: Wrong.
           --> a.kern:100:1
            |
          4 | x
            | - before
        ...
        100 | x
            | ^
        """,
    )


@pytest.mark.parametrize(
    ("line", "marked", "shown", "underline"),
    [
        ("\ta\tbc", "bc", "    a    bc", "         ^^"),
        ("a\tb", "\t", "a    b", " ^^^^"),
        ("\u4e2d\u6587 = x", "\u6587", "\u4e2d\u6587 = x", "  ^^"),
        ("e\u0301 = x", "x", "e\u0301 = x", "    ^"),
        ("a\x1b[31m = x", "x", "a\ufffd[31m = x", "         ^"),
        ("\u202eab x", "x", "\ufffdab x", "    ^"),
        ("a\ud800 x", "x", "a\ufffd x", "   ^"),
    ],
)
def test_the_caret_stands_under_its_text(
    line: str, marked: str, shown: str, underline: str
) -> None:
    source = Source("a.kern", line)
    lines = render([Sample(span=span(source, marked))]).splitlines()
    assert lines[3:] == [f"1 | {shown}", f"  | {underline}"]


def test_a_span_of_several_lines_shows_the_first() -> None:
    source = Source("a.kern", "kernel k(\n) {\n}\n")
    lines = render([Sample(span=Span(source, 7, 15), marks="all of it")]).splitlines()
    assert lines[3:] == ["1 | kernel k(", "  |        ^^ all of it"]


@pytest.mark.parametrize(("text", "at"), [("", 0), ("ab", 2), ("ab\n", 3), ("\n\n", 1)])
def test_an_empty_span_has_one_caret(text: str, at: int) -> None:
    source = Source("a.kern", text)
    rendered = render([Sample(span=Span(source, at, at))])
    assert rendered.count("^") == 1
    assert rendered.endswith("^\n")


def test_long_lines_are_cut_around_the_mark() -> None:
    source = Source("a.kern", "a" * 500 + "XYZ" + "b" * 500)
    for text, before, after in [
        ("XYZ", "...", "..."),
        ("aa", "", "..."),
        ("b", "...", "..."),
    ]:
        lines = render([Sample(span=span(source, text))], columns=60).splitlines()
        shown, marks = lines[3].removeprefix("1 | "), lines[4].removeprefix("  | ")
        assert shown.startswith(before)
        assert shown.endswith(after)
        assert len(shown) == 60 + len(before) + len(after)
        assert shown[marks.index("^") : len(marks)] == text


def test_marks_far_apart_on_a_long_line_have_an_excerpt_each() -> None:
    source = Source("a.kern", "ONE" + "a" * 500 + "TWO" + "b" * 20 + "SIX" + "c" * 500)
    places = (Related(span(source, "ONE"), "first"), Related(span(source, "TWO"), ""))
    fault = Sample(span=span(source, "SIX"), marks="here", near=places)
    lines = render([fault], columns=60).splitlines()[3:]
    assert [line.startswith("1 | ") for line in lines] == [True, False] * 2 + [False]
    for excerpt, marks, text in [(0, 1, "ONE"), (2, 3, "SIX"), (2, 4, "TWO")]:
        sign = max(lines[marks].find("^^^"), lines[marks].find("---"))
        assert lines[excerpt][sign : sign + 3] == text


def test_diagnostics_are_set_apart() -> None:
    fault = Sample(span=Span(Source("a.kern", "x"), 0, 1))
    one = render([fault])
    assert render([fault, fault]) == f"{one}\n{one}"
    assert render([]) == ""


escapes = re.compile(r"\x1b\[[0-9;]*m")
chars = st.characters(exclude_characters="\n")
lines = st.text(chars, max_size=60).map(lambda text: text.rstrip("\r"))
"""A carriage return at the end is part of the line's end, and not shown."""


@given(st.text(chars, max_size=60), st.data())
def test_colour_changes_no_text(text: str, data: st.DataObject) -> None:
    source = Source("a.kern", text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    fault = Sample(
        span=Span(source, start, end), says=f"Not [red]{text}.", remedy=f"[b]{text}"
    )
    plain = render([fault])
    coloured = render([fault], color=True)
    lines = escapes.sub("", coloured).split("\n")
    assert "\n".join(line.rstrip() for line in lines) == plain
    assert "\x1b[1;31m" in coloured


@given(lines, st.data())
def test_the_underline_is_as_wide_as_what_it_underlines(
    text: str, data: st.DataObject
) -> None:
    source = Source("a.kern", text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    last = render([Sample(span=Span(source, start, end))]).split("\n")[4]
    underline = last.removeprefix("  | ")
    assert underline.count("^") == max(1, width(text[start:end]))
    assert underline.index("^") == width(text[:start])


def test_plain_text_does_not_import_rich() -> None:
    program = (
        "import sys; from kerngen.source.render import render; "
        "from kerngen.source.text import Source, Span; render([]); "
        "sys.exit('rich' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_json() -> None:
    source = Source("a.kern", "one\ntwo three\n")
    fault = Sample(
        span=Span(source, 4, 14),
        marks="l",
        near=(Related(span(source, "one"), "first"),),
        remedy="h",
    )
    data = to_json([fault])
    assert json.loads(json.dumps(data)) == [
        {
            "severity": "error",
            "code": "KG9999",
            "headline": "Wrong.",
            "path": "a.kern",
            "line": 2,
            "column": 1,
            "end_line": 3,
            "end_column": 1,
            "label": "l",
            "hint": "h",
            "related": [
                {
                    "path": "a.kern",
                    "line": 1,
                    "column": 1,
                    "end_line": 1,
                    "end_column": 4,
                    "label": "first",
                }
            ],
        }
    ]


def test_faults_are_raised_once_each_in_source_order() -> None:
    source = Source("a.kern", "abc")
    late, early = (Sample(span=Span(source, at, at + 1)) for at in (2, 0))
    faults = Faults()
    for fault in (late, early, late):
        faults.add(fault)
    with faults.collect():
        raise CompileError([early])
    assert len(faults) == 2
    with pytest.raises(CompileError) as caught:
        faults.raise_if_any()
    assert caught.value.diagnostics == (early, late)
