"""Rendering of diagnostics: as text, plain or coloured, and as JSON data.

error[KG0108]: Comparisons can't be chained.
 --> a.kern:2:28
  |
2 |     c[i] = if 0 < i < n { a[i] } else { 0.0 };
  |                     ^ a second comparison
  |
  = hint: Join two comparisons with 'and', as in 'a < b and b < c'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from typing import TypeAlias, final

from kerngen.source.cells import clean, width
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Source, Span

# Pieces of text, each with its style in rich's words.
_Line: TypeAlias = tuple[tuple[str, str], ...]

_FIRST_ARROW = "-->"

_STRONG, _FRAME, _NEARBY = "bold", "blue", "cyan"
_STYLES = {"error": "bold red", "warning": "bold yellow"}


@final
@dataclass(frozen=True, slots=True)
class _Mark:
    """One underlined place: `^` for the fault itself, `-` for a related place."""

    span: Span
    label: str
    sign: str
    style: str

    @property
    def line(self) -> int:
        return self.span.line


def render(
    diagnostics: Iterable[Diagnostic], *, color: bool = False, columns: int = 120
) -> str:
    """Return the text of diagnostics, in the order given.

    Of source lines of more than `columns` characters, only the part around each mark is
    shown.
    """
    lines: list[_Line] = []
    for diagnostic in diagnostics:
        lines += [()] if lines else []
        lines += _block(diagnostic, columns)
    if color:
        return _coloured(lines)
    plain = ("".join(text for text, _ in line).rstrip() for line in lines)
    return "".join(f"{line}\n" for line in plain)


def _coloured(lines: Iterable[_Line]) -> str:
    # Imported here because plain text, and a build that goes well, need none of it.
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    out = StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
        no_color=False,
        legacy_windows=False,
    )
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)
    return out.getvalue()


def _block(diagnostic: Diagnostic, columns: int) -> Iterator[_Line]:
    marks = _marks(diagnostic)
    # As wide as the greatest line number.
    gutter = " " * len(str(max(mark.line for mark in marks)))
    edge = ((f"{gutter} |", _FRAME),)

    yield (
        (f"{diagnostic.severity}[{diagnostic.code}]", _STYLES[diagnostic.severity]),
        (f": {clean(diagnostic.message)}", _STRONG),
    )
    for arrow, source in zip(_arrows(), _sources(marks), strict=False):
        if arrow != _FIRST_ARROW:
            yield edge
        here = [mark for mark in marks if mark.span.source == source]
        line, column = source.position(here[0].span.start)
        yield (
            (f"{gutter}{arrow} ", _FRAME),
            (f"{clean(source.path)}:{line}:{column}", ""),
        )
        yield edge
        yield from _snippet(source, here, gutter, columns)
    if diagnostic.help:
        yield edge
        yield (
            (f"{gutter} = ", _FRAME),
            ("hint: ", _STRONG),
            (clean(diagnostic.help), ""),
        )


def _marks(diagnostic: Diagnostic) -> list[_Mark]:
    related = (
        _Mark(other.span, other.label, "-", _NEARBY) for other in diagnostic.related
    )
    style = _STYLES[diagnostic.severity]
    return [_Mark(diagnostic.span, diagnostic.label, "^", style), *related]


def _arrows() -> Iterator[str]:
    yield _FIRST_ARROW
    while True:
        yield ":::"


def _sources(marks: Iterable[_Mark]) -> Iterable[Source]:
    """The sources of the marks, each once, in order."""
    return dict.fromkeys(mark.span.source for mark in marks)


def _snippet(
    source: Source, marks: Iterable[_Mark], gutter: str, columns: int
) -> Iterator[_Line]:
    """Print each line that has marks once, and each mark below its line."""
    previous = 0
    for number, group in groupby(sorted(marks, key=_line_of), key=_line_of):
        if previous and number > previous + 1:
            yield (("...", _FRAME),)
        previous = number
        text = source.line_text(number)
        for first, shown in _windows(text, list(group), columns):
            yield from _excerpt(text, number, first, shown, gutter, columns)


def _windows(
    text: str, marks: list[_Mark], columns: int
) -> Iterator[tuple[int, list[_Mark]]]:
    """Yield where to cut a line, with the marks that are shown below that part of it.

    Marks that are too far apart get an excerpt of the line each.
    """
    while marks:
        leftmost = min(_extent(mark, text) for mark in marks)
        first = _cut(text, leftmost[0], columns)
        last = max(first + columns, leftmost[1])
        shown = [mark for mark in marks if _extent(mark, text)[1] <= last]
        yield first, shown
        marks = [mark for mark in marks if mark not in shown]


def _excerpt(
    text: str,
    number: int,
    first: int,
    marks: Iterable[_Mark],
    gutter: str,
    columns: int,
) -> Iterator[_Line]:
    """Print a part of a line, and below it each of its marks."""
    kept = text[first : first + columns]
    before = "..." if first else ""
    after = "..." if first + columns < len(text) else ""
    yield (
        (f"{number:>{len(gutter)}} | ", _FRAME),
        (before + clean(kept) + after, ""),
    )
    for mark in marks:
        start, end = (at - first for at in _extent(mark, text))
        indent = len(before) + width(kept[:start])
        sign = mark.sign * max(1, width(kept[start:end]))
        yield (
            (f"{gutter} | ", _FRAME),
            (" " * indent + f"{sign} {clean(mark.label)}", mark.style),
        )


def _line_of(mark: _Mark) -> int:
    return mark.line


def _extent(mark: _Mark, text: str) -> tuple[int, int]:
    """Where a mark starts and ends in its first line, counted in characters."""
    start = mark.span.source.position(mark.span.start)[1] - 1
    length = mark.span.end - mark.span.start
    return start, min(start + length, len(text))


def _cut(text: str, start: int, columns: int) -> int:
    """Choose the first character to show of a line that may be too long."""
    if len(text) <= columns:
        return 0
    return max(0, min(start - columns // 3, len(text) - columns))


def to_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, object]]:
    """Return diagnostics as objects that `json.dumps` takes; positions are 1-based."""
    return [
        {
            "severity": diagnostic.severity,
            "code": diagnostic.code,
            "headline": diagnostic.message,
            **_place(diagnostic.span),
            "label": diagnostic.label,
            "hint": diagnostic.help,
            "related": [
                {**_place(other.span), "label": other.label}
                for other in diagnostic.related
            ],
        }
        for diagnostic in diagnostics
    ]


def note_to_json(
    severity: str, text: str, path: str, span: Span | None = None
) -> dict[str, object]:
    """Return a message without a code as JSON data, with the keys of a diagnostic.

    Missing values are null or empty.
    """
    keys = ("line", "column", "end_line", "end_column")
    place = _place(span) if span else {"path": path, **dict.fromkeys(keys)}
    rest = {"label": "", "hint": "", "related": list[object]()}
    return {"severity": severity, "code": None, "headline": text, **place, **rest}


def _place(span: Span) -> dict[str, object]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "path": span.source.path,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }
