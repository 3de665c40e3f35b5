"""Diagnostics of `use`: missing, unreadable or circular files, KG0002 to KG0009."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.similar import did_you_mean
from kerngen.source.text import Span


class NotAUsePath(Diagnostic, code="KG0002"):
    MESSAGE = "'use' can't take '{path}': {why}."
    HELP = "Write the path from this file's folder, as in '../shared/math.kern'."
    path: str
    why: str


class MissingFile(Diagnostic, code="KG0003"):
    MESSAGE = "There is no file '{path}'."
    LABEL = "looked for as '{shown}'"
    path: str
    shown: str
    suggestion: str

    @property
    def help(self) -> str:
        """The file that was probably meant, or the folder that paths begin at."""
        return did_you_mean(self.suggestion) or (
            "A path begins at the folder of the file that uses it, as in "
            "'../shared/math.kern'."
        )


class UnreadableFile(Diagnostic, code="KG0004"):
    MESSAGE = "'{path}' can't be read: {why}."
    LABEL = "looked for as '{shown}'"
    path: str
    shown: str
    why: str


class OutsideSources(Diagnostic, code="KG0005"):
    MESSAGE = "'{path}' is outside of the source folder '{root}'."
    HELP = "Move the file into '{root}', so that every build of that folder has it."
    path: str
    root: str


class UsesItself(Diagnostic, code="KG0006"):
    MESSAGE = "This file uses itself."
    HELP = "Leave it out: a file sees its own items."


class UseCycle(Diagnostic, code="KG0007"):
    MESSAGE = "These files use each other in a circle: {chain}."
    HELP = "Move what both sides need to a file that both use."
    chain: str
    others: tuple[Span, ...] = related("and uses this")


class UsedTwice(Diagnostic, code="KG0008"):
    MESSAGE = "'{path}' is used twice."
    HELP = "Leave one of them out."
    other: Span = related("used here already")
    path: str
