"""Faults of a build of several files: two that generate the same file."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class ClashingFiles(
    Diagnostic,
    code="KG0010",
    message="{why}.",
    help="{remedy}.",
    related={"other": "the other file"},
):
    """A file that generates what another one does, or what a package needs."""

    why: str
    remedy: str
    other: Span | None
