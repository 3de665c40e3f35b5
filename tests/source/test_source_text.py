"""Offsets, lines and columns agree with Python's own idea of lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kerngen.source.text import Source, Span

texts = st.text(st.sampled_from("ab\n\t\u00e9\u4e2d"), max_size=40)


@given(texts, st.data())
def test_positions(text: str, data: st.DataObject) -> None:
    source = Source("a.kern", text)
    offset = data.draw(st.integers(0, len(text)))
    line, column = source.position(offset)
    before = text[:offset].split("\n")
    assert (line, column) == (len(before), len(before[-1]) + 1)


@given(texts)
def test_lines(text: str) -> None:
    source = Source("a.kern", text)
    lines = text.split("\n")
    assert len(source.line_starts) == len(lines)
    assert [source.line_text(i + 1) for i in range(len(lines))] == lines


def test_windows_line_ends_are_no_part_of_a_line() -> None:
    source = Source("a.kern", "ab\r\ncd\r\n")
    assert [source.line_text(line) for line in (1, 2, 3)] == ["ab", "cd", ""]
    assert source.position(4) == (2, 1)


@given(texts, st.data())
def test_spans(text: str, data: st.DataObject) -> None:
    source = Source("a.kern", text)
    place = st.integers(0, len(text))
    a, b, c, d = sorted(data.draw(st.tuples(place, place, place, place)))
    first, last = Span(source, a, b), Span(source, c, d)
    assert first.text == text[a:b]
    assert first.to(last) == last.to(first) == Span(source, a, d)
    assert first.to(first) == first
    assert last.line == text[:c].count("\n") + 1
