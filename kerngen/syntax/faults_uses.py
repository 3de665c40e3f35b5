"""Faults of `use`: files that are missing, unreadable or in a circle, KG0002 to KG0009."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import did_you_mean
from kerngen.source.text import Span


class NotAUsePath(
    Diagnostic,
    code="KG0002",
    message="'use' can't take '{path}': {why}.",
    help="Write the path from this file's folder, as in '../shared/math.kern'.",
):
    path: str
    why: str


class MissingFile(
    Diagnostic,
    code="KG0003",
    message="There is no file '{path}'.",
    label="looked for as '{shown}'",
    help="{remedy}",
):
    path: str
    shown: str
    suggestion: str

    @property
    def remedy(self) -> str:
        """What may be meant, or where paths begin."""
        return did_you_mean(self.suggestion) or (
            "A path begins at the folder of the file that uses it, as in "
            "'../shared/math.kern'."
        )


class UnreadableFile(
    Diagnostic,
    code="KG0004",
    message="'{path}' can't be read: {why}.",
    label="looked for as '{shown}'",
):
    path: str
    shown: str
    why: str


class OutsideSources(
    Diagnostic,
    code="KG0005",
    message="'{path}' is outside of the source folder '{root}'.",
    help="Move the file into '{root}', so that every build of that folder has it.",
):
    path: str
    root: str


class UsesItself(
    Diagnostic,
    code="KG0006",
    message="This file uses itself.",
    help="Leave it out: a file sees its own items.",
):
    """A file that uses itself."""


class UseCycle(
    Diagnostic,
    code="KG0007",
    message="These files use each other in a circle: {chain}.",
    help="Move what both sides need to a file that both use.",
    related={"others": "and uses this"},
):
    chain: str
    others: tuple[Span, ...]


class UsedTwice(
    Diagnostic,
    code="KG0008",
    message="'{path}' is used twice.",
    help="Leave one of them out.",
    related={"other": "used here already"},
):
    other: Span
    path: str
