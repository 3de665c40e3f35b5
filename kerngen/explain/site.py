"""The pages of error codes, as Markdown files of the documentation site."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.explain.pages import Page, code_spans, grouped

FOLDER = "errors"
"""The folder of the documents, inside the documentation's."""


def documents() -> dict[str, str]:
    """Return every page as a Markdown document, by its path in the documentation."""
    pages = (each for group in grouped().values() for each in group)
    return {
        f"{FOLDER}/index.md": index(),
        **{f"{FOLDER}/{each.code}.md": each.text for each in pages},
    }


def index() -> str:
    """Return the index page: each code with its rule, by topic."""
    return "\n".join(_index())


def _index() -> Iterator[str]:
    yield "# Errors\n"
    yield (
        "Every error of the compiler has a code. Its page says what the rule is for, and "
        "shows a wrong and a right program. `kerngen explain KG0404` prints the same in a "
        "terminal.\n"
    )
    for about, pages in grouped().items():
        yield f"## {about}\n"
        yield "| code | rule |"
        yield "| --- | --- |"
        yield from map(_row, pages)
        yield ""


def _row(page: Page) -> str:
    rule = code_spans(page.rule).replace("|", r"\|")
    return f"| [{page.code}]({page.code}.md) | {rule} |"
