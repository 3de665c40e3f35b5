"""Diagnostics of a build: files that generate the same output."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class ClashingFiles(Diagnostic):
    """A file whose output would replace another file's output."""

    CODE = "KG0010"
    MESSAGE = "{why}."
    HELP = "{remedy}."
    RELATED = {"other": "the other file"}
    why: str
    remedy: str
    other: Span | None
