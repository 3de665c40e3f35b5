"""Diagnostics of a build: files that generate the same output."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class ClashingFiles(Diagnostic, code="KG0010"):
    """A file whose output would replace another file's output."""

    MESSAGE = "{why}."
    why: str
    remedy: str
    other: Span | None = related("the other file")
