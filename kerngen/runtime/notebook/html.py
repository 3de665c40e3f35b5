"""HTML for notebooks: elements whose text is always escaped.

A string is text, whatever it holds; markup is made by `element` alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, final

_CODE: Final = (
    "margin: 0.3em 0 0.3em 1em; overflow-x: auto; white-space: pre; line-height: 1.4; "
    "font-family: var(--jp-code-font-family, monospace)"
)
"""The style of code: Jupyter would show a `pre` in the font of its text, and wrap it."""

_COLOURED: Final = re.compile(
    r"\b(?P<keyword>kernel|mut|let|host|if|else|and|or|not)\b"
    r"|\b(?P<builtin>[fiu]32|f16|[iu][48]|bool|vec[234][fiuh]|mat[234]x[234][fh])\b"
    r"|\b(?P<number>\d[\w.]*)"
)
"""The words with a colour; each group is named after a colour of Jupyter's themes."""


@final
@dataclass(frozen=True, slots=True)
class Html:
    """A piece of markup, whose text is HTML; a plain string is a text to be escaped."""

    text: str


def element(tag: str, *children: Html | str, attributes: str = "") -> Html:
    """Return an HTML element; `attributes` is markup of our own, never of a user's."""
    start = f"{tag} {attributes}" if attributes else tag
    return Html(f"<{start}>{_joined(children)}</{tag}>")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Html:
    """Return a table; cells are plain texts, which are escaped."""
    return element(
        "table",
        element("tr", *(_cell("th", cell) for cell in head)),
        *(element("tr", *(_cell("td", cell) for cell in row)) for row in rows),
    )


def _cell(tag: str, text: str) -> Html:
    return element(tag, text, attributes='style="text-align: left"')


def folded(summary: Html | str, *children: Html | str) -> Html:
    """Return `children` as content that is hidden until `summary` is clicked."""
    return element("details", element("summary", summary), *children)


def code(text: str) -> Html:
    """Return lines of code, or of other text in a fixed-width font."""
    return _lines(text)


def equations(text: str) -> Html:
    """Return lines of the kernel language with syntax highlighting.

    Shaders are not highlighted: their many tokens would make a notebook three times as
    large.
    """
    return _lines(*_coloured(text))


def _lines(*children: Html | str) -> Html:
    return element("pre", *children, attributes=f'style="{_CODE}"')


def _coloured(text: str) -> Iterator[Html | str]:
    end = 0
    for found in _COLOURED.finditer(text):
        yield text[end : found.start()]
        colour = f"color: var(--jp-mirror-editor-{found.lastgroup}-color, inherit)"
        yield element("span", found[0], attributes=f'style="{colour}"')
        end = found.end()
    yield text[end:]


def _joined(children: Iterable[Html | str]) -> str:
    return "".join(
        html.escape(child) if isinstance(child, str) else child.text
        for child in children
    )
