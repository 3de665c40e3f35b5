"""Diagnostics of `require`: codes KG09xx."""

from __future__ import annotations

from typing import Literal

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class RequireReads(Diagnostic, code="KG0901"):
    MESSAGE = "A 'require' can't use {what}."
    HELP = (
        "It is checked before the kernel runs, and is made of dims, integer scalars, "
        "constants, arithmetic and comparisons: 'require d % 8 == 0;'."
    )
    declared: Span | None = related("declared here", default=None)
    what: str


class RequireType(Diagnostic, code="KG0902"):
    MESSAGE = "What is required is true or false, but this is a number."
    HELP = "Compare it with something: 'require {example};'."
    example: str


class NeverMet(Diagnostic, code="KG0903"):
    MESSAGE = "No call of '{kernel}' meets {text}."
    HELP = {
        "alone": "It refuses every call: turn the comparison around.",
        "beside": "It contradicts those above it: change one of them.",
    }
    case: Literal["alone", "beside"]
    kernel: str
    text: str


class AlwaysMet(Diagnostic, code="KG0904"):
    MESSAGE = "Every call of '{kernel}' meets {text}."
    HELP = {
        "alone": "It refuses nothing: remove it, or turn the comparison around.",
        "beside": "It follows from those above it: remove it.",
    }
    case: Literal["alone", "beside"]
    kernel: str
    text: str
