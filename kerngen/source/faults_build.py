"""Faults of a build of several files: two that generate the same file."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class ClashingFiles(Diagnostic):
    """A file that generates what another one does, or what a package needs."""

    CODE = "KG0010"
    MESSAGE = "{why}."
    HELP = "{remedy}."
    RELATED = {"other": "the other file"}
    why: str
    remedy: str
    other: Span | None
