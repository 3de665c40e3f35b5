"""HTML for notebooks: elements whose text is always escaped.

A string is text, whatever it holds; markup is made by `element` alone.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Html:
    """A piece of markup."""

    text: str


def element(tag: str, *children: Html | str, attributes: str = "") -> Html:
    """Return an element; `attributes` is markup of our own, never of a user's."""
    start = f"{tag} {attributes}" if attributes else tag
    return Html(f"<{start}>{_joined(children)}</{tag}>")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Html:
    """Return a table whose cells are texts."""
    return element(
        "table",
        element("tr", *(element("th", cell) for cell in head)),
        *(element("tr", *(element("td", cell) for cell in row)) for row in rows),
    )


def folded(summary: Html | str, *children: Html | str) -> Html:
    """Return what is shown once its summary is clicked."""
    return element("details", element("summary", summary), *children)


def code(text: str) -> Html:
    """Return lines of code, or of what is shown like it."""
    return element("pre", text, attributes='style="margin: 0.3em 0 0.3em 1em"')


def _joined(children: Iterable[Html | str]) -> str:
    return "".join(
        html.escape(child) if isinstance(child, str) else child.text
        for child in children
    )
