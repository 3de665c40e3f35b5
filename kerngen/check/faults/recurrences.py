"""Diagnostics of recurrences: codes KG13xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class ReadsItself(Diagnostic, code="KG1301"):
    MESSAGE = "'{text}' is what is being defined here."
    HELP = (
        "Read '{name}' at an earlier or later value of one index, such as 't - 1'; or "
        "give the new values another name."
    )
    name: str
    text: str


class BothDirections(Diagnostic, code="KG1302"):
    MESSAGE = "'{name}' reads itself at earlier and at later values of '{index}'."
    HELP = (
        "What comes first can't depend on what comes after it: read one side only, or "
        "make two lets, one for each direction."
    )
    other: Span = related("earlier here")
    name: str
    index: str


class DistanceNotLiteral(Diagnostic, code="KG1303"):
    MESSAGE = "The distance at which '{name}' reads itself is no literal."
    HELP = (
        "Write a number or a constant, as in '{index} - 1': it decides in which order "
        "elements are computed, and how many are kept."
    )
    name: str
    index: str


class UnguardedBorder(Diagnostic, code="KG1304"):
    MESSAGE = (
        "Nothing excludes the {border} values of '{index}', where '{read}' is outside."
    )
    HELP = (
        "Read it in a branch of its own: 'if {condition} {{ {read} }} else {{ ... }}'."
    )
    index: str
    border: str
    read: str
    condition: str


class NoOrder(Diagnostic, code="KG1305"):
    MESSAGE = (
        "There is no index along which '{name}' reads only earlier values of itself: "
        "{reads}."
    )
    HELP = (
        "All of its reads must be at 't - 1', or some other literal, of the same "
        "index; of a table that is filled along two indices, compute a diagonal per "
        "step."
    )
    name: str
    reads: str
