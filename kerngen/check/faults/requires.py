"""What can be wrong with the conditions that a kernel requires of a call: codes KG09xx."""

from __future__ import annotations

from typing import Literal

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class RequireReads(
    Diagnostic,
    code="KG0901",
    message="A 'require' can't use {what}.",
    help=(
        "It is checked before the kernel runs, and is made of dims, integer scalars, "
        "constants, arithmetic and comparisons: 'require d % 8 == 0;'."
    ),
    related={"declared": "declared here"},
):
    declared: Span | None = None
    what: str


class RequireType(
    Diagnostic,
    code="KG0902",
    message="What is required is true or false, but this is a number.",
    help="Compare it with something: 'require {example};'.",
):
    example: str


class NeverMet(
    Diagnostic,
    code="KG0903",
    message="No call of '{kernel}' meets {text}.",
    help={
        "alone": "It refuses every call: turn the comparison around.",
        "beside": "It contradicts those above it: change one of them.",
    },
):
    case: Literal["alone", "beside"]
    kernel: str
    text: str


class AlwaysMet(
    Diagnostic,
    code="KG0904",
    message="Every call of '{kernel}' meets {text}.",
    help={
        "alone": "It refuses nothing: remove it, or turn the comparison around.",
        "beside": "It follows from those above it: remove it.",
    },
):
    case: Literal["alone", "beside"]
    kernel: str
    text: str
