"""Faults of a build of several files: two that generate the same file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Related
from kerngen.source.text import Span
from kerngen.source.worded import Worded


@final
@dataclass(frozen=True, kw_only=True)
class ClashingFiles(Worded):
    """A file that generates what another one does, or what a package needs."""

    code: ClassVar[str] = "KG0010"
    rule: ClassVar[str] = "Each file of a build becomes a module of its own."
    says: ClassVar[str] = "{why}."
    advice: ClassVar[str] = "{remedy}."

    why: str
    remedy: str
    other: Span | None

    @property
    def related(self) -> tuple[Related, ...]:
        """The file that it can't be beside."""
        return (Related(self.other, "the other file"),) if self.other else ()
