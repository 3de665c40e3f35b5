"""Faults of `use`: files that are missing, unreadable or in a circle, KG0002 to KG0009."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Related
from kerngen.source.similar import did_you_mean
from kerngen.source.text import Span
from kerngen.source.worded import Worded, WordedBeside


@final
@dataclass(frozen=True, kw_only=True)
class NotAUsePath(Worded):
    """A path that no file of a project can have."""

    code: ClassVar[str] = "KG0002"
    rule: ClassVar[str] = (
        "A file that is used is named by a path relative to the file that uses it, "
        "written with '/', and ends in '.kern'."
    )
    says: ClassVar[str] = "'use' can't take '{path}': {why}."
    advice: ClassVar[str] = (
        "Write the path from this file's folder, as in '../shared/math.kern'."
    )

    path: str
    why: str


@final
@dataclass(frozen=True, kw_only=True)
class MissingFile(Worded):
    """A file that is not there."""

    code: ClassVar[str] = "KG0003"
    rule: ClassVar[str] = "A file that is used exists."
    says: ClassVar[str] = "There is no file '{path}'."
    points: ClassVar[str] = "looked for as '{shown}'"
    advice: ClassVar[str] = "{remedy}"

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


@final
@dataclass(frozen=True, kw_only=True)
class UnreadableFile(Worded):
    """A file that the system doesn't let us read, or no file at all."""

    code: ClassVar[str] = "KG0004"
    rule: ClassVar[str] = "A file that is used can be read."
    says: ClassVar[str] = "'{path}' can't be read: {why}."
    points: ClassVar[str] = "looked for as '{shown}'"

    path: str
    shown: str
    why: str


@final
@dataclass(frozen=True, kw_only=True)
class OutsideSources(Worded):
    """A file beyond the folder whose sources are built."""

    code: ClassVar[str] = "KG0005"
    rule: ClassVar[str] = "A file that is used is in the folder of the sources."
    says: ClassVar[str] = "'{path}' is outside of the source folder '{root}'."
    advice: ClassVar[str] = (
        "Move the file into '{root}', so that every build of that folder has it."
    )

    path: str
    root: str


@final
@dataclass(frozen=True, kw_only=True)
class UsesItself(Worded):
    """A file that uses itself."""

    code: ClassVar[str] = "KG0006"
    rule: ClassVar[str] = "A file does not use itself."
    says: ClassVar[str] = "This file uses itself."
    advice: ClassVar[str] = "Leave it out: a file sees its own items."


@final
@dataclass(frozen=True, kw_only=True)
class UseCycle(Worded):
    """Files that use each other in a circle."""

    code: ClassVar[str] = "KG0007"
    rule: ClassVar[str] = "Files don't use each other in a circle."
    says: ClassVar[str] = "These files use each other in a circle: {chain}."
    advice: ClassVar[str] = "Move what both sides need to a file that both use."

    chain: str
    others: tuple[Span, ...]

    @property
    def related(self) -> tuple[Related, ...]:
        """The other links of the chain."""
        return tuple(Related(span, "and uses this") for span in self.others)


@final
@dataclass(frozen=True, kw_only=True)
class UsedTwice(WordedBeside):
    """A file that another one uses twice."""

    code: ClassVar[str] = "KG0008"
    rule: ClassVar[str] = "A file uses another one once."
    says: ClassVar[str] = "'{path}' is used twice."
    beside: ClassVar[str] = "used here already"
    advice: ClassVar[str] = "Leave one of them out."

    path: str
