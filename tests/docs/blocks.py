"""The blocks of code on a page: what they are, and what the page wants done with them.

A block's language says how it is judged (`tests.docs.judges`).  The title in its info
string is the file that it shows.  A comment in front of it, which readers do not see, says
what is special about it:

    <!-- docs: fails KG0304 -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

from markdown_it import MarkdownIt

from tests.project.tree import ROOT

WORDS: Final = {
    "fails": "a program that is refused, with these codes; or commands that exit with 1",
    "raises": "Python that raises an error",
    "figures": "output in which every number may be another one",
    "not run": "commands that take too long, or need what a test has not: only their words "
    "are judged",
    "foreign": "code for another library or language, which is parsed where we can",
    "compiled": "WGSL that nobody generated: it must be valid",
    "picture": "a text that is nobody's output",
    "nightly": "takes longer than CI should",
    "nightly fails": "commands that exit with 1, and take longer than CI should",
    "nightly figures": "output with other numbers, of what takes longer than CI should",
}
"""What a comment in front of a block may say."""

_NOTE: Final = re.compile(
    r"<!-- docs: (\w+(?: run| fails| figures)?)((?: KG\d+)*) -->\s*\Z"
)
_TITLE: Final = re.compile(r'title="([^"]+)"')


@final
@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    title: str | None
    note: str | None
    codes: tuple[str, ...]
    text: str

    @property
    def nightly(self) -> bool:
        """Whether it takes longer than CI should."""
        return self.note is not None and self.note.startswith("nightly")

    @property
    def fails(self) -> bool:
        """Whether its program is refused, or its commands exit with 1."""
        return self.note is not None and self.note.endswith("fails")

    @property
    def figures(self) -> bool:
        """Whether every number of its output may be another one."""
        return self.note is not None and self.note.endswith("figures")

    def __str__(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}: '{self.language}'"


def pages() -> list[Path]:
    """Every page that people read."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(found) > 20
    return sorted(found)


def blocks_of(page: Path, text: str | None = None) -> tuple[Block, ...]:
    """Return the fenced blocks of a page; code that is only indented is refused."""
    return _read(page) if text is None else tuple(_blocks(page, text))


@cache
def _read(page: Path) -> tuple[Block, ...]:
    """Return the blocks of a file: several test modules look at each page."""
    return tuple(_blocks(page, page.read_text("utf-8")))


def _blocks(page: Path, text: str) -> Iterator[Block]:
    note, codes = None, ()
    for token in MarkdownIt().parse(text):
        assert token.type != "code_block", f"{page}: indented code: {token.content}"
        if token.type == "html_block" and "docs:" in token.content:
            found = _NOTE.search(token.content)
            assert found, f"{page}: {token.content}"
            note, codes = found[1], tuple(found[2].split())
            assert note in WORDS, f"{page}: {token.content}"
        elif token.type == "fence":
            assert token.map is not None
            language, _, rest = token.info.partition(" ")
            title = _TITLE.search(rest)
            yield Block(
                page,
                token.map[0] + 1,
                language,
                title[1] if title else None,
                note,
                codes,
                token.content,
            )
            note, codes = None, ()
        else:
            assert note is None, f"{page}: nothing follows '{note}'"
